"""The console over HTTP: who gets in, what is served, and that nothing foreign can be made of it."""

import asyncio

import pytest

from barnabas.broker.group.kind import Committer
from barnabas.broker.group.records import CommittedOffset
from barnabas.protocol.topic_partition import TopicPartition
from tests.broker.console.conftest import looking


async def status_of(console, path="/", method="GET", **headers):
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    async with console.session.request(method, console.url + path, headers=named, allow_redirects=False) as response:
        return response.status


@pytest.mark.parametrize("path", ["/", "/metrics", "/api/overview", "/page/app.js", "/nothing"])
async def test_another_name_for_this_machine_gets_nothing(console, path):
    assert await status_of(console, path, Host="rebound.example:9080") == 403


@pytest.mark.parametrize("path", ["/metrics", "/api/overview", "/api/live", "/api/messages?topic=t"])
async def test_a_page_of_another_site_gets_nothing(console, path):
    assert await status_of(console, path, Origin="https://evil.example") == 403
    assert await status_of(console, path, Sec_Fetch_Site="cross-site") == 403


async def test_a_form_of_another_site_changes_nothing(writable):
    await writable.topic("kept")
    evil = {"Origin": "https://evil.example"}
    body = '{"name": "kept"}'
    path = f"{writable.url}/api/topics/delete"
    async with writable.session.post(path, data=body, headers=evil) as response:
        assert response.status == 403
    async with writable.session.post(path, data=body, headers={"Content-Type": "text/plain"}) as response:
        assert response.status == 400  # what a form can send is not JSON
    assert (await writable.get("/api/topic", name="kept"))[0] == 200


async def test_every_answer_has_the_policy_that_keeps_foreign_code_out(console):
    for path in ("/", "/page/app.js", "/api/overview", "/metrics", "/nothing", "/api/topic?name=no"):
        async with console.session.get(console.url + path) as response:
            assert "default-src 'none'" in response.headers["Content-Security-Policy"], path
            assert response.headers["X-Content-Type-Options"] == "nosniff"
            assert "Access-Control-Allow-Origin" not in response.headers


async def test_without_the_token_nobody_gets_in(tmp_path):
    async with looking(tmp_path, token="s3cret") as console:
        for path in ("/", "/metrics", "/api/overview", "/page/app.js"):
            assert await status_of(console, path) == 401
        assert await status_of(console, "/metrics", Authorization="Bearer s3cret") == 200
        assert await status_of(console, "/metrics", Authorization="Bearer wrong") == 401
        assert await status_of(console, "/?token=wrong") == 401
        assert await status_of(console, "/metrics?token=s3cret") == 401  # only the page takes it from its address


async def test_the_printed_address_gives_the_browser_its_token(tmp_path):
    async with looking(tmp_path, token="s3cret") as console:
        async with console.session.get(f"{console.url}/?token=s3cret", allow_redirects=False) as response:
            assert response.status == 303
            assert response.headers["Location"] == "/"
            cookie = response.headers["Set-Cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=Strict" in cookie
        console.session.cookie_jar.clear()
        given = {"Cookie": cookie.partition(";")[0]}
        async with console.session.get(f"{console.url}/api/overview", headers=given) as response:
            assert response.status == 200


async def test_the_page_and_its_parts(console):
    async with console.session.get(console.url) as response:
        page = await response.text()
        assert response.content_type == "text/html"
    assert "http://" not in page
    assert "https://" not in page
    async with console.session.get(f"{console.url}/page/app.js") as response:
        assert response.content_type == "text/javascript"
    assert await status_of(console, "/page/..%2fconsole.py") == 404


async def test_metrics_as_prometheus_reads_them(console):
    await console.topic("orders", 2, [b"one", b"two"])
    async with console.session.get(f"{console.url}/metrics") as response:
        assert response.content_type == "text/plain"
        lines = (await response.text()).splitlines()
    assert "# TYPE kafka_server_brokertopicmetrics_messagesin_total counter" in lines
    assert 'kafka_server_brokertopicmetrics_messagesin_total{topic="orders"} 2.0' in lines
    assert 'kafka_topic_partition_current_offset{partition="0",topic="orders"} 2.0' in lines
    assert "kafka_brokers 1.0" in lines


async def test_single_partitions_can_be_left_out(console):
    await console.topic("orders")
    async with console.session.get(f"{console.url}/metrics?partitions=false") as response:
        text = await response.text()
    assert "kafka_topic_partition_current_offset" not in text
    assert 'kafka_topic_partitions{topic="orders"} 1.0' in text
    assert "barnabas_metrics_partitions_left_out 1.0" in text
    assert await status_of(console, "/metrics?partitions=some") == 400


async def test_a_topic_with_a_hostile_name_is_one_line_of_metrics(console):
    """Kafka's own rules refuse such topics; groups may have any name."""
    done = asyncio.get_running_loop().create_future()
    await console.topic("t")
    groups = console.broker.groups
    await groups.ensure_topic()
    name = 'x"} 1\nfoo{a="<script>'
    offset = CommittedOffset(0, -1, "", 0, -1, console.broker.cluster.topic("t").topic_id)
    groups.commit(name, Committer("", None, -1), [(TopicPartition("t", 0), offset)], done.set_result)
    assert not await done
    async with console.session.get(f"{console.url}/metrics") as response:
        lines = (await response.text()).splitlines()
    assert not [line for line in lines if line.startswith("foo")]
    assert len([line for line in lines if line.startswith("kafka_consumergroup_members{")]) == 1


async def test_a_stream_ends_with_the_console(tmp_path):
    async with looking(tmp_path) as console:
        stream = await console.session.get(f'{console.url}/api/live?watch={{"o":{{"view":"overview"}}}}')
        assert (await stream.content.readline()).startswith(b'data: {"o":{')
        await console.console.stop()
        while await stream.content.readline():
            pass
