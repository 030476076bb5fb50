"""Who may come in: nobody else's page, under no other name, and from elsewhere only with the token."""

import pytest

from barnabas.broker.console.door import CONTENT_SECURITY_POLICY, Door, bearer

HOST = {"Host": "127.0.0.1:9080"}


def refused(door, headers, method="GET", is_page=False, given=None):
    return door.objection(method, is_page, headers, given)


@pytest.mark.parametrize("host", ["127.0.0.1:9080", "localhost:9080", "LOCALHOST:1", "[::1]:9080", "127.0.0.1"])
def test_its_own_names_are_welcome(host):
    assert refused(Door("127.0.0.1", None), {"Host": host}) is None


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:9080", "127.0.0.1.evil.example:9080", "", "192.168.1.7:9080"]
)
def test_a_name_that_only_dns_bends_to_here_is_refused(host):
    """DNS rebinding: the browser believes that it talks to evil.example, and says so."""
    refusal = refused(Door("127.0.0.1", None), {"Host": host})
    assert refusal is not None
    assert refusal.status == 403


def test_where_it_listens_everywhere_any_address_will_do_but_not_any_name():
    door = Door("0.0.0.0", "secret")
    assert refused(door, {"Host": "192.168.1.7:9080"}, given="secret") is None
    assert refused(door, {"Host": "evil.example:9080"}, given="secret") is not None


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://127.0.0.1:3000", "http://127.0.0.1:9080.evil.example"]
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_page_of_another_site_gets_nothing(origin, method):
    assert refused(Door("127.0.0.1", None), {**HOST, "Origin": origin}, method) is not None


def test_its_own_page_may_ask():
    headers = {**HOST, "Origin": "http://127.0.0.1:9080", "Sec-Fetch-Site": "same-origin"}
    assert refused(Door("127.0.0.1", None), headers, "POST") is None


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_other_sites_may_link_to_the_page_and_use_nothing(site):
    door = Door("127.0.0.1", None)
    link = {**HOST, "Sec-Fetch-Site": site, "Sec-Fetch-Mode": "navigate"}
    assert refused(door, link, is_page=True) is None
    assert refused(door, link, "POST", is_page=True) is not None
    assert refused(door, link) is not None
    assert refused(door, {**link, "Sec-Fetch-Mode": "no-cors"}, is_page=True) is not None


@pytest.mark.parametrize(("given", "status"), [(None, 401), ("wrong", 401), ("secret", None), ("sécret", 401)])
def test_a_token_is_asked_for_everywhere(given, status):
    refusal = refused(Door("0.0.0.0", "secret"), {"Host": "10.0.0.1"}, given=given)
    assert (refusal and refusal.status) == status


def test_prometheus_sends_the_token_in_a_header():
    assert bearer({"Authorization": "Bearer abc"}) == "abc"
    assert bearer({"Authorization": "Basic abc"}) is None
    assert bearer({}) is None


def test_the_policy_lets_nothing_foreign_run():
    assert "default-src 'none'" in CONTENT_SECURITY_POLICY
    assert "unsafe" not in CONTENT_SECURITY_POLICY
    assert "http" not in CONTENT_SECURITY_POLICY
