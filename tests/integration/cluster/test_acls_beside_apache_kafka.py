"""Access rules in one cluster of Apache Kafka 3.9.1 and Barnabas: what one makes, the other applies."""

from __future__ import annotations

import pytest

from barnabas.client.requests.acls import Rule, create_acls, delete_acls, describe_acls, rule
from barnabas.client.wire import Wire
from barnabas.protocol.acls import AclOperation, PatternType, PermissionType, ResourceType
from barnabas.protocol.api import ApiKey
from tests.support.cluster import Cluster, not_yet

pytestmark = [pytest.mark.java, pytest.mark.timeout(300)]

SETTINGS = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": "User:ANONYMOUS",
}
RULES = [
    rule("User:alice", AclOperation.READ, ResourceType.TOPIC, "orders"),
    rule("User:alice", AclOperation.DESCRIBE_CONFIGS, ResourceType.TOPIC, "orders", host="10.0.0.1"),
    rule("User:*", AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, "tx-", pattern_type=PatternType.PREFIXED),
    rule("User:bob", AclOperation.ALL, ResourceType.GROUP, "*", permission=PermissionType.DENY),
]


@pytest.fixture(scope="module")
def cluster():
    if reason := not_yet():
        pytest.skip(reason)
    with Cluster(["kafka", "barnabas"], SETTINGS) as cluster:
        yield cluster


def ask(broker, key, request):
    host, _, port = broker.address.rpartition(":")
    with Wire(host, int(port)) as wire:
        return wire.ask(key, request, 3)


def rules_at(broker, count):
    """What a broker knows; again until there are so many rules, because the other one hears of them later."""
    while True:
        answer = ask(broker, ApiKey.DESCRIBE_ACLS, describe_acls(Rule()))
        assert not answer.error_code
        found = {
            Rule(r.resource_type, r.resource_name, r.pattern_type, a.principal, a.host, a.operation, a.permission_type)
            for r in answer.resources
            for a in r.acls
        }
        if len(found) == count:
            return found


@pytest.mark.parametrize("maker", ["kafka", "barnabas"])
def test_what_one_makes_the_other_knows(cluster, maker):
    by_make = {broker.make: broker for broker in cluster.brokers}
    one = by_make[maker]
    other = by_make["barnabas" if maker == "kafka" else "kafka"]
    made = ask(one, ApiKey.CREATE_ACLS, create_acls(*RULES))
    assert [result.error_code for result in made.results] == [0] * len(RULES)
    assert rules_at(one, len(RULES)) == rules_at(other, len(RULES)) == set(RULES)
    deleted = ask(other, ApiKey.DELETE_ACLS, delete_acls(Rule(principal="User:alice"), Rule(principal="User:bob")))
    assert [len(result.matching_acls) for result in deleted.filter_results] == [2, 1]
    assert rules_at(one, 1) == rules_at(other, 1) == {RULES[2]}
    ask(one, ApiKey.DELETE_ACLS, delete_acls(Rule()))
    assert rules_at(one, 0) == rules_at(other, 0) == set()
