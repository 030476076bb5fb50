"""Access rules that any broker changes and every broker follows."""

import asyncio

import pytest

from barnabas.broker.acl_follower import AclFollower, can_be_kept
from barnabas.broker.controller.znodes import MalformedNode
from barnabas.broker.registry.session import Session
from barnabas.broker.registry.tree_operations import Create, Set
from barnabas.broker.security.acls import Acl, Entry, Pattern
from barnabas.broker.security.authorizer import Authorizer
from barnabas.protocol.acls import AclOperation, PatternType, PermissionType, ResourceType
from tests.broker.registry.memory import MemoryRegistry
from tests.support.manual_clock import ManualClock


def acl(name, operation=AclOperation.READ, pattern_type=PatternType.LITERAL, of_type=ResourceType.TOPIC):
    return Acl(Pattern(of_type, name, pattern_type), Entry("User:alice", "*", operation, PermissionType.ALLOW))


class Brokers:
    """Two of them, with the same tree."""

    def __init__(self):
        self.tree = MemoryRegistry()
        self.clock = ManualClock()
        self.tasks = []
        self.authorizers = [Authorizer((), False) for _ in range(2)]
        self.followers = [AclFollower(each, self.clock, self.spawn) for each in self.authorizers]

    def spawn(self, work):
        self.tasks.append(asyncio.get_running_loop().create_task(work))

    def rules(self):
        first, second = (set(each.acls) for each in self.authorizers)
        assert first == second
        return first


@pytest.fixture
async def two():
    two = Brokers()
    for follower in two.followers:
        await follower.follow(Session(two.tree))
    return two


async def test_a_change_by_one_broker_reaches_all(two):
    first, second = two.followers
    rules = [
        acl("t"),
        acl("t", AclOperation.WRITE),
        acl("p", pattern_type=PatternType.PREFIXED),
        acl("a/b", of_type=ResourceType.GROUP),
        acl("a", of_type=ResourceType.GROUP),
        acl("a/b/c", of_type=ResourceType.GROUP),
    ]
    await first.add(rules)
    assert two.rules() == set(rules)
    await second.add(rules[:1])
    await second.remove(rules[1:5])
    assert two.rules() == {rules[0], rules[5]}
    await first.remove(rules)
    assert two.rules() == set()
    assert two.tree.find("/kafka-acl/Topic/t") is None


async def test_decisions_follow_at_once(two):
    from barnabas.broker.security.principal import Principal

    access = two.authorizers[1].access(Principal("User", "alice"), "10.0.0.1")
    assert not access.readable_topics["t"]
    await two.followers[0].add([acl("t")])
    assert access.readable_topics["t"]


async def test_many_at_once(two):
    rules = {acl(f"t{number}") for number in range(250)}
    await two.followers[0].add(rules)
    assert two.rules() == rules
    await two.followers[1].remove(rules)
    assert two.rules() == set()


async def test_changes_are_announced_and_forgotten_after_a_while(two):
    await two.followers[0].add([acl("t"), acl("p", pattern_type=PatternType.PREFIXED)])
    (literal,) = two.tree.children("/kafka-acl-changes")
    assert two.tree.get(f"/kafka-acl-changes/{literal}").data == b"TOPIC:t"
    assert len(two.tree.children("/kafka-acl-extended-changes")) == 1
    two.clock.advance(16 * 60)
    await asyncio.gather(*two.tasks)
    assert two.tree.children("/kafka-acl-changes") == []
    assert two.tree.children("/kafka-acl-extended-changes") == []


async def test_the_next_session_knows_what_was_changed_meanwhile(two):
    late = AclFollower(authorizer := Authorizer((), False), two.clock, two.spawn)
    await two.followers[0].add([acl("t")])
    await late.follow(Session(two.tree))
    late.stop()
    await two.followers[0].remove([acl("t")])
    await two.followers[0].add([acl("u")])
    await late.follow(Session(two.tree))
    assert set(authorizer.acls) == {acl("u")}


async def test_rules_that_cannot_be_read_keep_a_broker_from_starting_and_do_not_change_others(two):
    await two.followers[0].add([acl("t")])
    await two.tree.multi([Set("/kafka-acl/Topic/t", b"nonsense")])
    assert two.rules() == {acl("t")}
    with pytest.raises(MalformedNode):
        await AclFollower(Authorizer((), False), two.clock, two.spawn).follow(Session(two.tree))


async def test_two_brokers_write_at_the_same_time(two):
    rules = acl("t"), acl("t", AclOperation.WRITE)
    await asyncio.gather(*(follower.add([rule]) for follower, rule in zip(two.followers, rules, strict=True)))
    assert two.rules() == set(rules)


async def test_what_kafka_has_written(two):
    data = b'{"version":1,"acls":[{"principal":"User:*","permissionType":"Deny","operation":"All","host":"10.0.0.9"}]}'
    await two.tree.multi([Create("/kafka-acl/Cluster/kafka-cluster", data)])
    (rule,) = two.rules()
    assert rule.entry == Entry("User:*", "10.0.0.9", AclOperation.ALL, PermissionType.DENY)


@pytest.mark.parametrize(("name", "kept"), [("t", True), ("a/b", True), ("a//b", False), ("/", False), ("..", False)])
def test_names_that_can_be_stored(name, kept):
    assert can_be_kept(Pattern(ResourceType.GROUP, name)) is kept
