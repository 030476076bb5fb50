"""What follows from access rules."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.broker.security.acls import Acl, AclFilter, Acls, Entry, Pattern
from barnabas.protocol.acls import AclOperation, PatternType, PermissionType, ResourceType

READ, WRITE, DESCRIBE, ALL = AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.ALL
ALLOW, DENY = PermissionType.ALLOW, PermissionType.DENY
TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED


def acl(
    name="t", operation=READ, permission=ALLOW, principal="User:alice", host="*", pattern_type=LITERAL, of_type=TOPIC
):
    return Acl(Pattern(of_type, name, pattern_type), Entry(principal, host, operation, permission))


def all_of(*acls):
    rules = Acls()
    for each in acls:
        rules.put(each.pattern, rules.entries(each.pattern) | {each.entry})
    return rules


def may(acls, operation=READ, name="t", principal="User:alice", host="10.0.0.1", of_type=TOPIC):
    return acls.authorize(principal, host, operation, of_type, name)


def test_a_rule_allows_what_it_says_and_nothing_else():
    acls = all_of(acl())
    assert may(acls) is True
    assert may(acls, WRITE) is False
    assert may(acls, principal="User:bob") is False
    assert may(acls, name="tt") is None
    assert may(acls, of_type=GROUP) is None


def test_a_resource_that_no_rule_applies_to():
    assert may(Acls()) is None


def test_wildcards():
    assert may(all_of(acl("*"))) is True
    assert may(all_of(acl(principal="User:*")), principal="User:bob") is True
    assert may(all_of(acl(operation=ALL)), AclOperation.ALTER_CONFIGS) is True


def test_a_prefix_that_looks_like_the_wildcard_is_a_prefix():
    acls = all_of(acl("*", pattern_type=PREFIXED))
    assert may(acls, name="t") is None
    assert may(acls, name="*t") is True


def test_hosts():
    acls = all_of(acl(host="10.0.0.1"))
    assert may(acls) is True
    assert may(acls, host="10.0.0.2") is False


@pytest.mark.parametrize("name", ["orders", "orders-eu", "orders-eu-1"])
def test_prefixes(name):
    acls = all_of(acl("orders", pattern_type=PREFIXED), acl("ord", WRITE, pattern_type=PREFIXED))
    assert may(acls, READ, name) is True
    assert may(acls, WRITE, name) is True
    assert may(acls, READ, "ord") is False
    assert may(acls, READ, "or") is None


def test_denials_win():
    for denied in (acl(permission=DENY), acl("*", ALL, DENY), acl("", READ, DENY, pattern_type=PREFIXED)):
        assert may(all_of(acl(), denied)) is False, denied
    assert may(all_of(acl(), acl(permission=DENY, host="10.0.0.2"))) is True
    assert may(all_of(acl(), acl(permission=DENY, principal="User:bob"))) is True


@pytest.mark.parametrize("operation", [READ, WRITE, AclOperation.DELETE, AclOperation.ALTER])
def test_a_right_on_a_resource_includes_describing_it(operation):
    assert may(all_of(acl(operation=operation)), DESCRIBE) is True
    assert may(all_of(acl(operation=DESCRIBE), acl(operation=operation, permission=DENY)), DESCRIBE) is True


def test_the_right_to_alter_settings_includes_describing_them():
    assert may(all_of(acl(operation=AclOperation.ALTER_CONFIGS)), AclOperation.DESCRIBE_CONFIGS) is True
    assert may(all_of(acl(operation=AclOperation.ALTER_CONFIGS)), DESCRIBE) is False


def test_rules_can_be_removed():
    acls = all_of(acl(), acl("o", pattern_type=PREFIXED), acl("p", pattern_type=PREFIXED))
    assert len(acls) == 3
    acls.put(Pattern(TOPIC, "o", PREFIXED), ())
    acls.put(Pattern(TOPIC, "unknown", PREFIXED), ())
    assert (may(acls, name="orders"), may(acls, name="payments")) == (None, True)
    acls.replace({Pattern(TOPIC, "q"): [acl().entry]})
    assert [each.pattern.name for each in acls] == ["q"]
    assert may(acls, name="payments") is None


names = st.text("ab*", max_size=4)
rules = st.lists(
    st.builds(
        acl,
        names.filter(bool),
        st.sampled_from([READ, WRITE, DESCRIBE, ALL]),
        st.sampled_from([ALLOW, DENY]),
        st.sampled_from(["User:alice", "User:bob", "User:*"]),
        st.sampled_from(["*", "10.0.0.1", "10.0.0.2"]),
        st.sampled_from([LITERAL, PREFIXED]),
    ),
    max_size=8,
)


@given(rules, names, st.sampled_from([READ, WRITE, DESCRIBE]))
def test_the_index_decides_like_a_scan_of_all_rules(own, name, operation):
    """The filter MATCH is another way to find the rules that apply to a resource."""
    about = [each for each in own if AclFilter(TOPIC, name, PatternType.MATCH).matches(each)]
    fitting = [
        e.entry for e in about if e.entry.principal in ("User:alice", "User:*") and e.entry.host in ("*", "10.0.0.1")
    ]
    denied = any(e.permission == DENY and e.operation in (operation, ALL) for e in fitting)
    granting = {operation, ALL} | ({READ, WRITE} if operation == DESCRIBE else set())
    allowed = any(e.permission == ALLOW and e.operation in granting for e in fitting)
    expected = None if not about else allowed and not denied
    assert may(all_of(*own), operation, name) is expected


@pytest.mark.parametrize(
    ("rules", "allowed"),
    [
        ([], False),
        ([acl(operation=WRITE)], True),
        ([acl(operation=ALL)], True),
        ([acl(operation=READ)], False),
        ([acl("*", WRITE)], True),
        ([acl("*", WRITE), acl("*", WRITE, DENY)], False),
        ([acl("*", WRITE), acl("t", WRITE, DENY)], True),
        ([acl(operation=WRITE), acl(operation=WRITE, permission=DENY)], False),
        ([acl("tt", WRITE), acl("t", WRITE, DENY, pattern_type=PREFIXED)], False),
        ([acl("t", WRITE, pattern_type=PREFIXED), acl("t", WRITE, DENY)], True),
        ([acl("t", WRITE, pattern_type=PREFIXED), acl("t", WRITE, DENY, pattern_type=PREFIXED)], False),
        ([acl(operation=WRITE, principal="User:bob")], False),
        ([acl(operation=WRITE, host="10.0.0.2")], False),
        ([acl(operation=WRITE, of_type=GROUP)], False),
    ],
)
def test_whether_something_is_allowed_anywhere(rules, allowed):
    assert all_of(*rules).authorize_some("User:alice", "10.0.0.1", WRITE, TOPIC) is allowed
