"""Settings that were altered at run-time, in the registry: any broker may alter them, and every broker follows them.

Each alteration writes the settings' node and, in the same transaction, a sequential node below /config/changes that
names it (broker/announcements). Every broker watches these, and reads what they name again.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, Protocol
from urllib.parse import unquote

import structlog

from barnabas.broker.announcements import Announcements
from barnabas.broker.clock import Clock
from barnabas.broker.controller import znodes
from barnabas.broker.quotas.entities import Entity
from barnabas.broker.registry.errors import Conflict, NoNode, RegistryError
from barnabas.broker.registry.registry import Change, Node, Registry
from barnabas.broker.registry.tree_operations import Check, Create, Operation, Set
from barnabas.broker.security.sasl.scram import read_credential
from barnabas.protocol.scram import ScramCredential

log = structlog.get_logger()

ChangeConfigs = Callable[[Mapping[str, str]], Mapping[str, str]]
"""Makes new settings from the current ones. It is called again if those have changed meanwhile."""


_WITH_QUOTAS: Final = (znodes.USER_CONFIGS, znodes.CLIENT_CONFIGS, znodes.IP_CONFIGS)


class Told(Protocol):
    """Who is told about alterations: the metadata cache."""

    def topic_configs_changed(self, names: Iterable[str]) -> None: ...

    def broker_configs_changed(self, broker_id: int | None, configs: Mapping[str, str]) -> None: ...


class ToldOfQuotas(Protocol):
    """Who is told what the registry has about users, client ids and addresses."""

    def set(self, entity: Entity, configs: Mapping[str, str]) -> None: ...

    def replace(self, all_configs: Mapping[Entity, Mapping[str, str]]) -> None: ...


class ConfigFollower:
    def __init__(
        self, clock: Clock, spawn: Callable[[Coroutine[Any, Any, None]], None], quotas: ToldOfQuotas | None = None
    ) -> None:
        """`spawn` runs work in the background."""
        self.told: Told | None = None
        self._quotas = quotas
        self._spawn = spawn
        self._registry: Registry | None = None
        self._unwatch: list[Callable[[], None]] = []
        self._group_paths: dict[str, str] = {}  # few groups have settings: heartbeats check here first
        self._parsed: dict[str, tuple[Node, Mapping[str, str]]] = {}  # asked for by each of a topic's partitions
        self._announcements = Announcements(znodes.CONFIG_CHANGES, clock, spawn, self._on_announcements)

    async def follow(self, registry: Registry) -> None:
        """Follow the settings in a new session. Reports what changed since the previous one."""
        self.stop()
        again = self._registry is not None
        self._registry = registry
        self._unwatch = [
            registry.watch(znodes.TOPIC_CONFIGS, self._on_topics),
            registry.watch(znodes.BROKER_CONFIGS, self._on_brokers),
            registry.watch(znodes.GROUP_CONFIGS, self._on_groups),
            *(registry.watch(path, self._on_quotas) for path in _WITH_QUOTAS),
        ]
        self._on_groups(())
        self._announcements.follow(registry)
        if self._quotas is not None:
            self._quotas.replace(dict(self._all_with_quotas(registry)))
        if again and self.told is not None:
            self.told.topic_configs_changed(_children(registry, znodes.TOPIC_CONFIGS))
            for broker_id, configs in self.broker_configs().items():
                self.told.broker_configs_changed(broker_id, configs)

    def stop(self) -> None:
        for cancel in self._unwatch:
            cancel()
        self._unwatch = []
        self._announcements.stop()

    # --- reading ---

    def topic_configs(self, topic: str) -> Mapping[str, str]:
        return self._read(znodes.topic_config_path(topic))

    def group_configs(self, group_id: str) -> Mapping[str, str]:
        path = self._group_paths.get(group_id)
        return {} if path is None else self._read(path)

    def configured_groups(self) -> list[str]:
        """The groups that have settings of their own."""
        return sorted(self._group_paths)

    def broker_configs(self) -> dict[int | None, Mapping[str, str]]:
        """What was set at run-time for single brokers, and with None for all of them."""
        if self._registry is None:
            return {}
        names = _children(self._registry, znodes.BROKER_CONFIGS)
        return {_broker_id(name): self._read(f"{znodes.BROKER_CONFIGS}/{name}") for name in names}

    def users(self) -> list[str]:
        """The entities for which the registry has settings."""
        return [] if self._registry is None else list(map(unquote, _children(self._registry, znodes.USER_CONFIGS)))

    def scram_credential(self, user: str, mechanism: str) -> ScramCredential | None:
        text = self._read(znodes.user_config_path(user)).get(mechanism) if user else None
        return None if text is None else read_credential(text)

    def _all_with_quotas(self, registry: Registry) -> Iterator[tuple[Entity, Mapping[str, str]]]:
        paths = [f"{parent}/{name}" for parent in _WITH_QUOTAS for name in _children(registry, parent)]
        for path in paths:
            entity = znodes.quota_entity(path)
            if entity is not None:
                yield entity, self._read_quotas(path)
            paths += [f"{path}/clients/{name}" for name in _children(registry, f"{path}/clients")]

    def _read_quotas(self, path: str) -> Mapping[str, str]:
        try:
            return self._read(path)
        except znodes.MalformedNode as error:
            log.warning("quotas that cannot be read are left out", reason=str(error))
            return {}

    def _read(self, path: str) -> Mapping[str, str]:
        node = None if self._registry is None else self._registry.find(path)
        if node is None:
            self._parsed.pop(path, None)
            return {}
        known = self._parsed.get(path)
        if known is None or known[0] is not node:
            known = self._parsed[path] = (node, znodes.read_configs(path, node))
        return known[1]

    # --- altering ---

    async def alter_topic(self, topic: str, change: ChangeConfigs, *, validate_only: bool = False) -> None:
        """Replace a topic's settings with what `change` returns. Raises what that raises, and NoNode if there is no
        such topic.

        The topic may be deleted at the same moment. Its settings are altered only if it still exists then.
        """
        path = znodes.topic_config_path(topic)
        exists = Check(znodes.topic_path(topic))
        await self._alter(path, f"topics/{topic}", change, validate_only, [exists])

    async def alter_broker(self, broker_id: int | None, change: ChangeConfigs, *, validate_only: bool = False) -> None:
        """Replace the run-time settings of a broker, or of all brokers for None, with what `change` returns."""
        path = znodes.broker_config_path(broker_id)
        await self._alter(path, path.removeprefix("/config/"), change, validate_only, [])

    async def alter_group(self, group_id: str, change: ChangeConfigs, *, validate_only: bool = False) -> None:
        """Replace the settings of a group, which need not exist, with what `change` returns."""
        path = znodes.group_config_path(group_id)
        await self._alter(path, path.removeprefix("/config/"), change, validate_only, [])

    async def alter_user(self, user: str, change: ChangeConfigs) -> None:
        """Replace what the registry has about a user with what `change` returns."""
        path = znodes.user_config_path(user)
        await self._alter(path, path.removeprefix("/config/"), change, False, [])

    async def alter_quotas(self, entity: Entity, change: ChangeConfigs, *, validate_only: bool = False) -> None:
        """Replace what the registry has about a user, a client id or an address with what `change` returns."""
        path = znodes.quota_path(entity)
        await self._alter(path, path.removeprefix("/config/"), change, validate_only, [])

    async def _alter(
        self, path: str, entity: str, change: ChangeConfigs, validate_only: bool, checks: Sequence[Operation]
    ) -> None:
        registry = self._registry
        if registry is None:
            raise RegistryError("there is no session with the registry yet")
        while True:
            node = registry.find(path)
            present = {} if node is None else znodes.read_configs(path, node)
            configs = change(present)
            if validate_only or configs == present:
                return
            data = znodes.write_configs(configs)
            missing = [parent for parent in _parents(path) if registry.find(parent) is None]
            try:
                await registry.multi(
                    [
                        *checks,
                        *map(Create, missing),
                        Create(path, data) if node is None else Set(path, data, node.version),
                        Create(znodes.CONFIG_CHANGE, znodes.write_config_change(entity), sequential=True),
                    ]
                )
            except Conflict as conflict:
                if isinstance(conflict, NoNode) and any(conflict.path == check.path for check in checks):
                    raise
                for each in (*_parents(path), path):
                    await registry.refresh(each)
                # Another make of broker may have created parents, or removed empty ones.
                still_missing = [parent for parent in _parents(path) if registry.find(parent) is None]
                if still_missing == missing and registry.find(path) == node:
                    raise  # it does not fit the tree that it was decided from
            else:
                return

    # --- following ---

    def _on_announcements(self, new: Sequence[tuple[str, Node]]) -> None:
        entities = []
        for path, node in new:
            if node.data:
                with suppress(znodes.MalformedNode):  # not one of ours; its meaning is unknown
                    entities.append(znodes.read_config_change(path, node))
        if entities and self._registry is not None:
            self._spawn(self._refresh(self._registry, entities))

    async def _refresh(self, registry: Registry, entities: Iterable[str]) -> None:
        for entity in dict.fromkeys(entities):
            path = f"/config/{entity}"
            try:
                for each in (*_parents(path), path):
                    await registry.refresh(each)
            except RegistryError as error:
                # When the registry can be reached again, everything is read again.
                log.warning("an altered setting cannot be read now", entity=entity, reason=str(error))

    def _on_topics(self, changes: Sequence[Change]) -> None:
        if self.told is not None:
            names = [
                path.removeprefix(f"{znodes.TOPIC_CONFIGS}/") for path, _ in changes if path != znodes.TOPIC_CONFIGS
            ]
            self.told.topic_configs_changed(names)

    def _on_brokers(self, changes: Sequence[Change]) -> None:
        for path, _ in changes:
            name = path.removeprefix(f"{znodes.BROKER_CONFIGS}/")
            if self.told is not None and path != znodes.BROKER_CONFIGS:
                self.told.broker_configs_changed(_broker_id(name), self._read(path))

    def _on_groups(self, _: Sequence[Change]) -> None:
        if self._registry is not None:
            names = _children(self._registry, znodes.GROUP_CONFIGS)
            self._group_paths = {unquote(name): f"{znodes.GROUP_CONFIGS}/{name}" for name in names}

    def _on_quotas(self, changes: Sequence[Change]) -> None:
        for path, _ in changes:
            entity = znodes.quota_entity(path)
            if entity is not None and self._quotas is not None:
                self._quotas.set(entity, self._read_quotas(path))


def _parents(path: str) -> list[str]:
    """The nodes above one that exist only because of others below them: those of a user's client ids."""
    kind, *names = path.removeprefix("/config/").split("/")
    return [f"/config/{kind}/{'/'.join(names[:count])}" for count in range(1, len(names))]


def _children(registry: Registry, path: str) -> list[str]:
    return registry.children(path) if registry.find(path) is not None else []


def _broker_id(name: str) -> int | None:
    return None if name == znodes.DEFAULT_BROKER else znodes.read_broker_id(name)
