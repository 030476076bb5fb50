"""Snapshots: a prepared state of a broker that can be restored any number of times.

A snapshot is a copy of the data directories and the registry at one moment, kept in a folder of the first broker's data
directory. Restoring replaces the data with a copy of it, within the running brokers; clients are disconnected and
reconnect.

Connections are not part of a state, and so group members are not either: groups come back with their offsets but
without members. Otherwise the next member to join would wait for members that no longer exist.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
from typing import TYPE_CHECKING, Any, Final

from barnabas.broker.config.several import BROKERS_FOLDER
from barnabas.broker.local_cluster import REGISTRY_FILE
from barnabas.broker.registry.embedded import EmbeddedRegistry
from barnabas.broker.testing.http import BadRequest, ControlError, NotFound
from barnabas.broker.testing.serving import EPHEMERAL_MARK
from barnabas.broker.testing.settling import settle
from barnabas.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from barnabas.storage.directory_copy import copy_directory, copy_of_copy
from barnabas.storage.log_directory import LOCK_FILE

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.local_cluster import LocalCluster
    from barnabas.broker.testing.clock import MovableClock

FOLDER: Final = ".barnabas-snapshots"
_NAME: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}")
_ABOUT: Final = "snapshot.json"
_DATA: Final = "data"
_REGISTRY: Final = REGISTRY_FILE
# What a restore leaves in a data directory.
_KEPT: Final = (FOLDER, LOCK_FILE, EPHEMERAL_MARK, BROKERS_FOLDER)


class Snapshots:
    def __init__(self, cluster: LocalCluster, clock: MovableClock) -> None:
        self._cluster = cluster
        self._clock = clock
        # The first is where the registry is.
        self._folders = {node.broker_id: os.path.abspath(node.config.data_dirs[0]) for node in cluster.nodes.values()}
        self._data = next(iter(self._folders.values()))
        self._folder = os.path.join(self._data, FOLDER)
        self._one_at_a_time = asyncio.Lock()

    def names(self) -> list[str]:
        try:
            return sorted(name for name in os.listdir(self._folder) if os.path.exists(self._path(name, _ABOUT)))
        except FileNotFoundError:
            return []

    async def take(self, name: str | None) -> dict[str, Any]:
        """Save the current state under a name, by default a generated one. It replaces an older one of that name."""
        async with self._one_at_a_time:
            name = self._new_name() if name is None else name
            if not _NAME.fullmatch(name):
                raise BadRequest("a snapshot's name has letters, digits, '.', '_' and '-', at most 100", "name")
            self._require_all("taken")
            await settle(self._cluster)
            # From here to the end of the copy nothing else happens on the loop: it is one moment.
            shutil.rmtree(self._path(name), ignore_errors=True)
            os.makedirs(self._path(name))
            for broker in self._cluster.brokers:
                copy_directory(broker.replicas.directory, self._copy_of(name, broker.config.node_id))
            rows = self._cluster.tree.rows()
            about = {"name": name, "topics": _topic_count(self._cluster), "ahead_ms": self._clock.ahead_ms}
            await asyncio.to_thread(self._finish, name, about, rows)
            return about

    def _finish(self, name: str, about: dict[str, Any], rows: list[tuple[str, bytes, int]]) -> None:
        EmbeddedRegistry.write_copy(self._path(name, _REGISTRY), rows)
        with open(self._path(name, _ABOUT), "w", encoding="utf-8") as file:
            json.dump(about, file)

    async def restore(self, name: str) -> dict[str, Any]:
        async with self._one_at_a_time:
            about = self._about(name)
            self._require_all("restored")

            def swap() -> None:
                for broker_id, folder in self._folders.items():
                    for entry in os.listdir(folder):
                        if entry not in _KEPT:
                            _remove(os.path.join(folder, entry))
                    copy_of_copy(self._copy_of(name, broker_id), folder)
                shutil.copyfile(self._path(name, _REGISTRY), os.path.join(self._data, _REGISTRY))

            self._clock.set_wall_ahead(about["ahead_ms"])
            await self._cluster.reopen(swap)
            await self._loaded()
            for broker in self._cluster.brokers:
                _dismiss_members(broker)
            return about

    def _require_all(self, what: str) -> None:
        missing = [node.broker_id for node in self._cluster.nodes.values() if node.broker is None]
        if missing:
            brokers = ", ".join(map(str, missing))
            raise ControlError(409, f"a snapshot can be {what} only while all brokers run; not running: {brokers}")

    def delete(self, name: str) -> None:
        self._about(name)
        shutil.rmtree(self._path(name))

    async def _loaded(self) -> None:
        while any(each.groups.is_loading or each.transactions.is_loading for each in self._cluster.brokers):  # noqa: ASYNC110, there is no event for the last load
            await asyncio.sleep(0.0005)

    def _about(self, name: str) -> dict[str, Any]:
        if name not in self.names():
            others = ", ".join(self.names())
            raise NotFound(f"there is no snapshot {name!r}; " + (f"there are {others}" if others else "there are none"))
        try:
            with open(self._path(name, _ABOUT), encoding="utf-8") as file:
                about: dict[str, Any] = json.load(file)
        except (OSError, ValueError) as error:
            raise ControlError(500, f"snapshot {name!r} cannot be read: {error}") from None
        return about

    def _new_name(self) -> str:
        taken = set(self.names())
        return next(name for number in range(1, len(taken) + 2) if (name := f"snapshot-{number}") not in taken)

    def _path(self, *names: str) -> str:
        return os.path.join(self._folder, *names)

    def _copy_of(self, name: str, broker_id: int) -> str:
        return self._path(name, _DATA, str(broker_id))


def _topic_count(cluster: LocalCluster) -> int:
    return max((len(broker.cluster.topics) for broker in cluster.brokers), default=0)


def _dismiss_members(broker: Broker) -> None:
    """Make every member of every group leave."""
    for shard in list(broker.groups.shards):
        for group in list(shard.groups.values()):
            leaving = [
                MemberIdentity(member_id=member_id, group_instance_id=instance_id)
                for member_id, instance_id in group.identities()
            ]
            if leaving:
                broker.groups.leave(LeaveGroupRequest(group_id=group.group_id, members=leaving), 5)


def _remove(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    else:
        os.unlink(path)
