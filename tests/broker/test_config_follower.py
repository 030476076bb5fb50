"""Settings that any broker alters and every broker follows."""

import asyncio
import json
from collections.abc import Coroutine, Mapping
from typing import Any

import pytest

from barnabas.broker.cluster.registration import join_cluster
from barnabas.broker.config_follower import ChangeConfigs, ConfigFollower
from barnabas.broker.quotas.entities import DEFAULT, Entity
from barnabas.broker.registry.errors import NoNode
from barnabas.broker.registry.session import Session
from barnabas.broker.registry.tree_operations import Create, Delete
from tests.broker.controller.cluster import topic_operations
from tests.broker.registry.memory import MemoryRegistry
from tests.support.manual_clock import ManualClock


class Told:
    """A metadata cache, as far as settings go."""

    def __init__(self, follower: ConfigFollower) -> None:
        self._follower = follower
        self.topics: dict[str, Mapping[str, str]] = {}
        self.brokers: dict[int | None, Mapping[str, str]] = {}

    def topic_configs_changed(self, names: Any) -> None:
        self.topics |= {name: self._follower.topic_configs(name) for name in names}

    def broker_configs_changed(self, broker_id: int | None, configs: Mapping[str, str]) -> None:
        self.brokers[broker_id] = configs


class ToldOfQuotas:
    """What a broker knows about users, client ids and addresses."""

    def __init__(self) -> None:
        self.known: dict[Entity, Mapping[str, str]] = {}

    def set(self, entity: Entity, configs: Mapping[str, str]) -> None:
        self.known[entity] = configs

    def replace(self, all_configs: Mapping[Entity, Mapping[str, str]]) -> None:
        self.known = dict(all_configs)


class Followers:
    """Three brokers with the same tree."""

    def __init__(self) -> None:
        self.tree = MemoryRegistry()
        self.clock = ManualClock()
        self.tasks: list[asyncio.Task[None]] = []
        self.quotas = [ToldOfQuotas() for _ in range(3)]
        self.followers = [ConfigFollower(self.clock, self.spawn, quotas) for quotas in self.quotas]
        self.told = [Told(follower) for follower in self.followers]

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        self.tasks.append(asyncio.get_running_loop().create_task(work))

    async def settle(self) -> None:
        while self.tasks:
            await self.tasks.pop()


@pytest.fixture
async def three() -> Followers:
    three = Followers()
    await join_cluster(three.tree, "an-id")
    three.tree.apply(topic_operations("t", [(1,)], {"a": "1"}))
    for follower, told in zip(three.followers, three.told, strict=True):
        follower.told = told
        await follower.follow(Session(three.tree))
    return three


def setting(**configs: str) -> ChangeConfigs:
    return lambda present: {**present, **configs}


async def test_an_alteration_by_one_broker_reaches_all(three: Followers) -> None:
    await three.followers[1].alter_topic("t", setting(b="2"))
    await three.followers[2].alter_broker(None, setting(c="3"))
    await three.followers[2].alter_broker(7, setting(d="4"))
    await three.settle()
    for told in three.told:
        assert told.topics == {"t": {"a": "1", "b": "2"}}
        assert told.brokers == {None: {"c": "3"}, 7: {"d": "4"}}
    assert three.followers[0].broker_configs() == {None: {"c": "3"}, 7: {"d": "4"}}


async def test_alterations_are_announced_as_kafka_does(three: Followers) -> None:
    await three.followers[0].alter_topic("t", setting(b="2"))
    await three.followers[0].alter_broker(None, setting(c="3"))
    names = three.tree.children("/config/changes")
    assert names == ["config_change_0000000000", "config_change_0000000001"]
    data = [three.tree.get(f"/config/changes/{name}").data for name in names]
    assert data == [
        b'{"version":2,"entity_path":"topics/t"}',
        b'{"version":2,"entity_path":"brokers/<default>"}',
    ]


async def test_nothing_is_announced_if_nothing_changes(three: Followers) -> None:
    await three.followers[0].alter_topic("t", setting(a="1"))
    await three.followers[0].alter_topic("t", setting(a="2"), validate_only=True)
    assert three.tree.children("/config/changes") == []
    assert three.followers[1].topic_configs("t") == {"a": "1"}


async def test_announcements_are_removed_after_a_quarter_of_an_hour(three: Followers) -> None:
    await three.followers[0].alter_topic("t", setting(b="2"))
    three.clock.advance(600)
    await three.followers[0].alter_topic("t", setting(b="3"))
    three.clock.advance(299)
    assert len(three.tree.children("/config/changes")) == 2
    three.clock.advance(1)
    await three.settle()
    assert three.tree.children("/config/changes") == ["config_change_0000000001"]
    three.clock.advance(900)
    await three.settle()
    assert three.tree.children("/config/changes") == []


async def test_unknown_announcements_do_no_harm(three: Followers) -> None:
    for data in (b"", b"nonsense", b'{"version":2,"entity_path":"users/bob"}'):
        three.tree.apply([Create("/config/changes/config_change_", data, sequential=True)])
    await three.settle()
    await three.followers[0].alter_topic("t", setting(b="2"))
    assert three.told[1].topics["t"] == {"a": "1", "b": "2"}


async def test_no_alteration_is_lost_among_many(three: Followers) -> None:
    names = [f"n{number}" for number in range(30)]
    await asyncio.gather(
        *(three.followers[number % 3].alter_broker(1, setting(**{name: "x"})) for number, name in enumerate(names))
    )
    assert set(three.told[0].brokers[1]) == set(names)


async def test_a_topic_that_is_not_there_has_no_settings(three: Followers) -> None:
    with pytest.raises(NoNode):
        await three.followers[0].alter_topic("nosuch", setting(a="1"))
    assert three.tree.children("/config/topics") == ["t"]


async def test_a_refused_alteration_changes_nothing(three: Followers) -> None:
    def refuse(present: Mapping[str, str]) -> Mapping[str, str]:
        raise LookupError("no")

    with pytest.raises(LookupError):
        await three.followers[0].alter_broker(1, refuse)
    assert three.followers[0].broker_configs() == {}


async def test_removed_settings_are_reported(three: Followers) -> None:
    await three.followers[0].alter_broker(None, setting(c="3"))
    three.tree.apply([Delete("/config/brokers/<default>")])
    assert three.told[2].brokers == {None: {}}


async def test_a_new_session_reports_what_the_last_one_missed(three: Followers) -> None:
    follower, told = three.followers[0], three.told[0]
    follower.stop()
    await three.followers[1].alter_topic("t", setting(b="2"))
    await three.followers[1].alter_broker(None, setting(c="3"))
    assert told.topics == {}
    await follower.follow(Session(three.tree))
    assert told.topics == {"t": {"a": "1", "b": "2"}}
    assert told.brokers == {None: {"c": "3"}}


async def test_a_topic_that_comes_with_settings_has_them(three: Followers) -> None:
    three.tree.apply(topic_operations("u", [(1,)], {"x": "1"}))
    assert three.followers[2].topic_configs("u") == {"x": "1"}
    three.tree.apply([Delete("/config/topics/u")])
    assert three.followers[2].topic_configs("u") == {}


QUOTAS = {
    Entity(user="alice"): ("users/alice", {"producer_byte_rate": "1"}),
    Entity(user=DEFAULT): ("users/<default>", {"producer_byte_rate": "2"}),
    Entity(user="<default>"): ("users/%3Cdefault%3E", {"producer_byte_rate": "3"}),
    Entity(client_id="an app"): ("clients/an%20app", {"producer_byte_rate": "4"}),
    Entity(user="alice", client_id=DEFAULT): ("users/alice/clients/<default>", {"producer_byte_rate": "5"}),
    Entity(user="bob", client_id="app"): ("users/bob/clients/app", {"producer_byte_rate": "6"}),
    Entity(ip="127.0.0.1"): ("ips/127.0.0.1", {"connection_creation_rate": "7"}),
}


@pytest.mark.parametrize("name", [".", ".."])
async def test_a_name_that_could_not_be_part_of_a_path(three: Followers, name: str) -> None:
    follower, other = three.followers[:2]
    entities = [Entity(user=name), Entity(client_id=name), Entity(user=name, client_id=name)]
    await follower.alter_user(name, setting(a="1"))
    await follower.alter_group(name, setting(b="2"))
    for entity in entities:
        await follower.alter_quotas(entity, setting(producer_byte_rate="3"))
    await three.settle()
    assert (other.users(), other.configured_groups(), other.group_configs(name)) == ([name], [name], {"b": "2"})
    assert three.quotas[1].known.keys() == set(entities)


async def test_quotas_are_where_kafka_keeps_them_and_every_broker_is_told(three: Followers) -> None:
    for entity, (_, configs) in QUOTAS.items():
        await three.followers[0].alter_quotas(entity, setting(**configs))
    await three.settle()
    announced = [
        json.loads(three.tree.get(f"/config/changes/{name}").data)["entity_path"]
        for name in three.tree.children("/config/changes")
    ]
    assert announced == [path for path, _ in QUOTAS.values()]
    for path, configs in QUOTAS.values():
        assert json.loads(three.tree.get(f"/config/{path}").data) == {"version": 1, "config": configs}
    for quotas in three.quotas:
        known = {entity: configs for entity, configs in quotas.known.items() if configs}
        assert known == {entity: configs for entity, (_, configs) in QUOTAS.items()}


async def test_a_new_session_reports_all_quotas(three: Followers) -> None:
    for entity, (_, configs) in QUOTAS.items():
        await three.followers[0].alter_quotas(entity, setting(**configs))
    three.quotas[1].known = {Entity(user="gone"): {"producer_byte_rate": "9"}}
    await three.followers[1].follow(Session(three.tree))
    known = {entity: configs for entity, configs in three.quotas[1].known.items() if configs}
    assert known == {entity: configs for entity, (_, configs) in QUOTAS.items()}


async def test_quotas_that_cannot_be_read_are_left_out(three: Followers) -> None:
    three.tree.apply([Create("/config/users/alice", b"not json")])
    await three.followers[0].alter_quotas(Entity(user="bob"), setting(producer_byte_rate="1"))
    assert three.quotas[0].known[Entity(user="alice")] == {}
    assert three.quotas[0].known[Entity(user="bob")] == {"producer_byte_rate": "1"}
