"""Rules that are created, described and deleted: Apache Kafka and Barnabas answer alike."""

import pytest

from barnabas.client.requests import acls, lookup
from barnabas.protocol.acls import AclOperation, PatternType, PermissionType, ResourceType
from barnabas.protocol.api import ApiKey
from tests.support.acl_side_by_side import ADMIN

pytestmark = pytest.mark.java


def play(brokers, key, request, version=3):
    brokers.play(lambda side: [side.ask(key, request, version)])


READ = acls.rule("User:x", AclOperation.READ, ResourceType.TOPIC, "rule")

INVALID = {
    "no name": READ._replace(name=""),
    "another cluster": READ._replace(resource_type=ResourceType.CLUSTER),
    "any type": READ._replace(resource_type=ResourceType.ANY),
    "type 99": READ._replace(resource_type=99),
    "type 0": READ._replace(resource_type=0),
    "any pattern": READ._replace(pattern_type=PatternType.ANY),
    "pattern match": READ._replace(pattern_type=PatternType.MATCH),
    "pattern 99": READ._replace(pattern_type=99),
    "pattern 0": READ._replace(pattern_type=0),
    "any operation": READ._replace(operation=AclOperation.ANY),
    "operation 99": READ._replace(operation=99),
    "operation 0": READ._replace(operation=0),
    "any permission": READ._replace(permission=PermissionType.ANY),
    "permission 99": READ._replace(permission=99),
    "permission 0": READ._replace(permission=0),
    "a principal without a type": READ._replace(principal="x"),
    "an empty principal": READ._replace(principal=""),
}


@pytest.mark.parametrize("name", INVALID)
def test_a_rule_that_cannot_be_created(brokers, name):
    valid = READ._replace(name="beside")
    play(brokers, ApiKey.CREATE_ACLS, acls.create_acls(INVALID[name], valid))
    play(brokers, ApiKey.DELETE_ACLS, acls.delete_acls(acls.Rule(name="beside"), acls.Rule(name="rule")))


ODD = {
    "no principal's name": READ._replace(principal="User:"),
    "a type nobody has": READ._replace(principal="Group:x"),
    "no host": READ._replace(host=""),
    "a host's name": READ._replace(host="example.com"),
    "an operation that topics do not have": READ._replace(operation=AclOperation.CLUSTER_ACTION),
    "a name with a slash": READ._replace(resource_type=ResourceType.GROUP, name="a/b"),
    "a name that is not one": READ._replace(name="no name: ü"),
    "a user": READ._replace(resource_type=ResourceType.USER, name="User:y", operation=AclOperation.CREATE_TOKENS),
    "a token": READ._replace(resource_type=ResourceType.DELEGATION_TOKEN, name="z", operation=AclOperation.DESCRIBE),
    "a prefix of everything": READ._replace(name="*", pattern_type=PatternType.PREFIXED),
    "two-phase commit": READ._replace(
        resource_type=ResourceType.TRANSACTIONAL_ID, name="q", operation=AclOperation.TWO_PHASE_COMMIT
    ),
}


@pytest.mark.parametrize("name", ODD)
def test_an_odd_rule(brokers, name):
    rule = ODD[name]
    play(brokers, ApiKey.CREATE_ACLS, acls.create_acls(rule, rule))
    settled(brokers, rule, 1)
    play(brokers, ApiKey.DESCRIBE_ACLS, acls.describe_acls(rule))
    play(brokers, ApiKey.DELETE_ACLS, acls.delete_acls(rule, rule))
    settled(brokers, rule, 0)
    play(brokers, ApiKey.DELETE_ACLS, acls.delete_acls(rule))


def settled(brokers, chosen, count):
    """Apache Kafka answers before its rules are effective."""
    for side in (brokers.kafka, brokers.barnabas):
        while True:
            answer = side.ask(ApiKey.DESCRIBE_ACLS, acls.describe_acls(chosen), 3)
            if sum(len(each.acls) for each in answer.resources) == count:
                break


FILTERS = {
    "all of a topic": acls.Rule(ResourceType.TOPIC, "story-1", PatternType.MATCH),
    "of any kind of pattern": acls.Rule(ResourceType.TOPIC, "story-1", PatternType.ANY),
    "literal": acls.Rule(ResourceType.TOPIC, "story-1", PatternType.LITERAL),
    "prefixed": acls.Rule(ResourceType.TOPIC, "story-", PatternType.PREFIXED),
    "prefixed by another name": acls.Rule(ResourceType.TOPIC, "story-1", PatternType.PREFIXED),
    "matching the wildcard": acls.Rule(ResourceType.GROUP, "*", PatternType.MATCH, principal="User:story"),
    "of a principal": acls.Rule(principal="User:story"),
    "of a host": acls.Rule(host="10.0.0.1"),
    "denials": acls.Rule(permission=PermissionType.DENY, principal="User:story"),
    "of an operation": acls.Rule(operation=AclOperation.ALTER, principal="User:story"),
    "of a type": acls.Rule(ResourceType.TRANSACTIONAL_ID, principal="User:story"),
    "type 99": acls.Rule(99),
    "pattern 99": acls.Rule(pattern_type=99),
    "operation 99": acls.Rule(operation=99),
    "permission 99": acls.Rule(permission=99),
    "type 0": acls.Rule(0),
    "pattern 0": acls.Rule(pattern_type=0),
    "operation 0": acls.Rule(operation=0),
    "permission 0": acls.Rule(permission=0),
}


def test_filters(brokers):
    def rule(operation, resource_type, name, **fields):
        return acls.rule("User:story", operation, resource_type, name, **fields)

    rules = [
        rule(AclOperation.READ, ResourceType.TOPIC, "story-1"),
        rule(AclOperation.WRITE, ResourceType.TOPIC, "story-1", permission=PermissionType.DENY),
        rule(AclOperation.ALTER, ResourceType.TOPIC, "story-", pattern_type=PatternType.PREFIXED),
        rule(AclOperation.READ, ResourceType.GROUP, "*", host="10.0.0.1"),
        rule(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, "story", host="10.0.0.1"),
    ]
    everything = acls.Rule(principal="User:story")
    play(brokers, ApiKey.CREATE_ACLS, acls.create_acls(*rules))
    settled(brokers, everything, len(rules))
    for name, chosen in FILTERS.items():
        for version in (1, 2, 3):
            try:
                play(brokers, ApiKey.DESCRIBE_ACLS, acls.describe_acls(chosen), version)
            except AssertionError as difference:
                raise AssertionError(f"{name}, version {version}: {difference}") from None
    for name in ("type 99", "pattern 99", "operation 99", "permission 99", "type 0", "operation 0"):
        play(brokers, ApiKey.DELETE_ACLS, acls.delete_acls(FILTERS[name], FILTERS["literal"]))
        play(brokers, ApiKey.CREATE_ACLS, acls.create_acls(*rules))
        settled(brokers, everything, len(rules))
    play(brokers, ApiKey.DELETE_ACLS, acls.delete_acls(FILTERS["literal"], everything))
    settled(brokers, everything, 0)


def test_a_changed_rule_holds_at_once_for_open_connections(brokers):
    user = "u0-1"  # has no rights
    rule = acls.rule(f"User:{user}", AclOperation.DESCRIBE, ResourceType.TOPIC, "t")
    answers = []
    for wanted in (acls.create_acls(rule), acls.delete_acls(rule)):
        key = ApiKey.CREATE_ACLS if not answers else ApiKey.DELETE_ACLS
        side = brokers.barnabas
        side.ask(key, wanted, 3)
        side.user = user
        answers.append(side.ask(ApiKey.METADATA, lookup.metadata(["t"]), 12).topics[0].error_code)
        side.user = ADMIN
    assert answers == [0, 29]
