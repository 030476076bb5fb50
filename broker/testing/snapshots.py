"""Snapshots: a prepared state of a broker, to be brought back as often as wanted.

A snapshot is a copy of the data directory and the registry at one moment, kept in a folder of the data directory.
Restoring puts a copy of it in the place of the data, within the running broker; clients are disconnected and come back.

Connections are no part of a state, and so members of groups are not either: groups come back with their offsets and
without members. Otherwise whoever joins next would wait for ghosts.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
from typing import TYPE_CHECKING, Any, Final

from broker.registry.embedded import EmbeddedRegistry
from broker.testing.http import BadRequest, ControlError, NotFound
from broker.testing.quiet import settle
from broker.testing.serving import EPHEMERAL_MARK
from protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from storage.directory_copy import copy_directory, copy_of_copy
from storage.log_directory import LOCK_FILE

if TYPE_CHECKING:
    from broker.broker import Broker
    from broker.testing.clock import MovableClock

FOLDER: Final = ".barnabas-snapshots"
_NAME: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}")
_ABOUT: Final = "snapshot.json"
_DATA: Final = "data"
_REGISTRY: Final = "registry.db"


class Snapshots:
    def __init__(self, broker: Broker, clock: MovableClock) -> None:
        self._broker = broker
        self._clock = clock
        self._data = os.path.abspath(broker.config.data_dirs[0])
        self._folder = os.path.join(self._data, FOLDER)
        self._one_at_a_time = asyncio.Lock()

    def names(self) -> list[str]:
        try:
            return sorted(name for name in os.listdir(self._folder) if os.path.exists(self._path(name, _ABOUT)))
        except FileNotFoundError:
            return []

    async def take(self, name: str | None) -> dict[str, Any]:
        """Keep the present state under a name, which is made up if none is given; an older one of it is replaced."""
        async with self._one_at_a_time:
            name = self._new_name() if name is None else name
            if not _NAME.fullmatch(name):
                raise BadRequest("a snapshot's name has letters, digits, '.', '_' and '-', at most 100", "name")
            await settle(self._broker)
            # From here to the end of the copy nothing else happens on the loop: it is one moment.
            shutil.rmtree(self._path(name), ignore_errors=True)
            os.makedirs(self._path(name))
            copy_directory(self._broker.replicas.directory, self._path(name, _DATA))
            rows = self._broker.registry.rows()
            about = {"name": name, "topics": len(self._broker.cluster.topics), "ahead_ms": self._clock.ahead_ms}
            await asyncio.to_thread(self._finish, name, about, rows)
            return about

    def _finish(self, name: str, about: dict[str, Any], rows: list[tuple[str, bytes, int]]) -> None:
        EmbeddedRegistry.write_copy(self._path(name, _DATA, _REGISTRY), rows)
        with open(self._path(name, _ABOUT), "w", encoding="utf-8") as file:
            json.dump(about, file)

    async def restore(self, name: str) -> dict[str, Any]:
        async with self._one_at_a_time:
            about = self._about(name)

            def swap() -> None:
                for entry in os.listdir(self._data):
                    if entry not in (FOLDER, LOCK_FILE, EPHEMERAL_MARK):
                        _remove(os.path.join(self._data, entry))
                copy_of_copy(self._path(name, _DATA), self._data)

            self._clock.set_wall_ahead(about["ahead_ms"])
            await self._broker.reopen(swap)
            await self._loaded()
            _dismiss_members(self._broker)
            return about

    def delete(self, name: str) -> None:
        self._about(name)
        shutil.rmtree(self._path(name))

    async def _loaded(self) -> None:
        while self._broker.groups.is_loading or self._broker.transactions.is_loading:  # noqa: ASYNC110, nobody tells when the last of them is loaded
            await asyncio.sleep(0.0005)

    def _about(self, name: str) -> dict[str, Any]:
        if name not in self.names():
            raise NotFound(f"there is no snapshot {name!r}, only {', '.join(self.names()) or 'none'}")
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


def _dismiss_members(broker: Broker) -> None:
    """Let every member of every group leave."""
    for shard in list(broker.groups.shards):
        for group in list(shard.groups.values()):
            if group.members:
                leaving = [
                    MemberIdentity(member_id=member.member_id, group_instance_id=member.group_instance_id)
                    for member in group.members.values()
                ]
                broker.groups.leave(LeaveGroupRequest(group_id=group.group_id, members=leaving), 5)


def _remove(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    else:
        os.unlink(path)
