"""Rules in the registry, byte for byte as Apache Kafka 3.9 stores them in ZooKeeper."""

import pytest

from barnabas.broker.controller.znodes import MalformedNode
from barnabas.broker.registry.registry import Node
from barnabas.broker.security.acl_nodes import announcement, path_of, pattern_at, read_entries, write_entries
from barnabas.broker.security.acls import Entry, Pattern
from barnabas.protocol.acls import AclOperation, PatternType, PermissionType, ResourceType

PATHS = {
    "/kafka-acl/Topic/t": Pattern(ResourceType.TOPIC, "t"),
    "/kafka-acl/TransactionalId/*": Pattern(ResourceType.TRANSACTIONAL_ID, "*"),
    "/kafka-acl/Group/a/b": Pattern(ResourceType.GROUP, "a/b"),
    "/kafka-acl-extended/prefixed/Group/g-": Pattern(ResourceType.GROUP, "g-", PatternType.PREFIXED),
}


@pytest.mark.parametrize("path", PATHS)
def test_paths(path):
    assert path_of(PATHS[path]) == path
    assert pattern_at(path) == PATHS[path]


@pytest.mark.parametrize("path", ["/kafka-acl", "/kafka-acl/Topic", "/kafka-acl-extended/prefixed", "/kafka-acl/New/x"])
def test_other_nodes(path):
    assert pattern_at(path) is None


def test_entries():
    entry = Entry("User:alice", "*", AclOperation.DESCRIBE_CONFIGS, PermissionType.ALLOW)
    data = (
        b'{"version":1,"acls":[{"principal":"User:alice","permissionType":"Allow",'
        b'"operation":"DescribeConfigs","host":"*"}]}'
    )
    assert write_entries([entry]) == data
    assert read_entries("/p", Node(data)) == {entry}
    assert read_entries("/p", Node(b"")) == frozenset()


@pytest.mark.parametrize("data", [b"{", b"[]", b"{}", b'{"acls":[{"principal":"User:a"}]}', b'{"acls":[1]}'])
def test_what_cannot_be_read(data):
    with pytest.raises(MalformedNode, match="/p: "):
        read_entries("/p", Node(data))


def test_announcements():
    literal = announcement(PATHS["/kafka-acl/Topic/t"])
    assert (literal.path, literal.data, literal.sequential) == ("/kafka-acl-changes/acl_changes_", b"TOPIC:t", True)
    prefixed = announcement(PATHS["/kafka-acl-extended/prefixed/Group/g-"])
    assert prefixed.path == "/kafka-acl-extended-changes/acl_changes_"
    assert prefixed.data == b'{"version":1,"resourceType":"GROUP","name":"g-","patternType":"PREFIXED"}'
