"""What a principal may do from a host, and for how long that is cached."""

import pytest

from barnabas.broker.config import BrokerConfig
from barnabas.broker.security.acls import Entry, Pattern
from barnabas.broker.security.authorizer import EVERYTHING, Authorizer, authorizer_of
from barnabas.broker.security.principal import Principal
from barnabas.protocol.acls import AclOperation, PermissionType, ResourceType

ALICE = Principal("User", "alice")
READ_T = Entry("User:alice", "*", AclOperation.READ, PermissionType.ALLOW)
T = Pattern(ResourceType.TOPIC, "t")


def authorizer(*, super_users=(), allow_everyone=False):
    found = Authorizer(super_users, allow_everyone)
    found.acls.put(T, [READ_T])
    return found


def test_a_decision_is_remembered_until_the_rules_change():
    rules = authorizer()
    access = rules.access(ALICE, "10.0.0.1")
    assert access.readable_topics["t"]
    assert not access.writable_topics["t"]
    rules.acls.put(T, [])
    assert access.readable_topics["t"]
    rules.changed()
    assert not access.readable_topics["t"]


def test_connections_of_one_principal_share_what_was_decided():
    rules = authorizer()
    assert rules.access(ALICE, "10.0.0.1") is rules.access(ALICE, "10.0.0.1")


def test_super_users_may_do_everything():
    access = authorizer(super_users=["User:alice"]).access(ALICE, "10.0.0.1")
    assert access.is_super_users
    assert access.cluster(AclOperation.CLUSTER_ACTION)
    assert access.some(AclOperation.WRITE, ResourceType.TOPIC)


def test_everybody_may_do_everything_to_resources_without_rules_if_so_set():
    access = authorizer(allow_everyone=True).access(Principal("User", "bob"), "10.0.0.1")
    assert access.topic(AclOperation.WRITE, "other")
    assert not access.topic(AclOperation.READ, "t")  # there is a rule about it


def test_what_may_be_done_as_bits():
    access = authorizer().access(ALICE, "10.0.0.1")
    both = 1 << AclOperation.READ | 1 << AclOperation.DESCRIBE
    assert access.operations(ResourceType.TOPIC, "t") == both
    assert access.cluster_operations() == 0
    assert EVERYTHING.operations(ResourceType.TOPIC, "t") == 0b110111111000
    assert EVERYTHING.cluster_operations() == 0b1111110100000


def test_made_up_names_do_not_fill_the_memory():
    access = authorizer().access(ALICE, "10.0.0.1")
    for number in range(10_500):
        assert not access.readable_topics[f"made-up-{number}"]
    assert len(access.readable_topics) <= 10_000


@pytest.mark.parametrize(
    ("host", "written"),
    [("10.0.0.1", "10.0.0.1"), ("::1", "0:0:0:0:0:0:0:1"), ("fe80::1%eth0", "fe80:0:0:0:0:0:0:1%eth0")],
)
def test_hosts_are_written_as_in_java(host, written):
    rules = Authorizer((), False)
    rules.acls.put(T, [READ_T._replace(host=written)])
    assert rules.access(ALICE, host).topic(AclOperation.READ, "t")


def test_the_settings():
    assert authorizer_of(BrokerConfig()) is None
    name = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    found = authorizer_of(BrokerConfig({"authorizer.class.name": name, "super.users": "User:a; User:b ;"}))
    assert found is not None
    assert found.super_users == {"User:a", "User:b"}
