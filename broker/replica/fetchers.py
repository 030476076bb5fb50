"""All fetchers of a broker: one for each broker that leads partitions which this one follows."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from barnabas.broker.clock import Clock
from barnabas.broker.interbroker.channel import Channel
from barnabas.broker.replica.fetcher import Fetcher, FetchSettings
from barnabas.broker.replica.follower import Disk, Follower
from barnabas.broker.replica.partition import Partition
from barnabas.broker.replica.worker import Worker
from barnabas.protocol.messages.leader_and_isr import LeaderAndIsrLiveLeader
from barnabas.storage.log_directory import LogDirectory

OpenChannel = Callable[[str, int], Channel]
"""Opens a channel to a host and port for a single fetcher, because the records in its answers are in its buffer."""


class Fetchers:
    def __init__(
        self,
        broker_id: int,
        broker_epoch: Callable[[], int],
        open_channel: OpenChannel | None,
        settings: FetchSettings,
        directory: LogDirectory,
        worker: Worker,
        disk: Disk,
        clock: Clock,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        """Without `open_channel`, partitions that follow get nothing."""
        self._broker_id = broker_id
        self._broker_epoch = broker_epoch
        self._open_channel = open_channel
        self._settings = settings
        self._directory = directory
        self._worker = worker
        self._disk = disk
        self._clock = clock
        self._loop = loop
        self._addresses: dict[int, tuple[str, int]] = {}
        self._fetchers: dict[int, Fetcher] = {}
        self._followers: dict[Partition, Follower] = {}

    def leaders_are_at(self, leaders: Iterable[LeaderAndIsrLiveLeader]) -> None:
        """Where leaders can be reached, according to the controller. A leader that has moved is followed to its new
        address."""
        for leader in leaders:
            address = leader.host_name, leader.port
            if self._addresses.get(leader.broker_id) == address:
                continue
            self._addresses[leader.broker_id] = address
            old = self._fetchers.pop(leader.broker_id, None)
            if old is not None:
                old.close()
            for follower in self._followers.values():
                if follower.leader_id == leader.broker_id:
                    self._begin(follower)

    def follow(self, partition: Partition) -> None:
        """Follow the partition's leader in its current epoch."""
        self.forget(partition)
        follower = self._followers[partition] = Follower(partition, self._directory, self._worker, self._disk)
        self._begin(follower)

    def _begin(self, follower: Follower) -> None:
        address = self._addresses.get(follower.leader_id)
        if address is None or self._open_channel is None:
            return  # the controller will say who leads, and where
        fetcher = self._fetchers.get(follower.leader_id)
        if fetcher is None:
            fetcher = self._fetchers[follower.leader_id] = Fetcher(
                self._broker_id,
                self._broker_epoch,
                follower.leader_id,
                self._open_channel(*address),
                self._settings,
                self._clock,
                self._loop,
            )
        fetcher.follow(follower)

    def forget(self, partition: Partition) -> None:
        """Stop following. What is still on its way is not appended."""
        follower = self._followers.pop(partition, None)
        if follower is None:
            return
        fetcher = self._fetchers.get(follower.leader_id)
        if fetcher is not None:
            fetcher.forget(follower)
            if fetcher.is_idle:
                del self._fetchers[follower.leader_id]
                fetcher.close()

    def wake(self, partition: Partition) -> None:
        """The partition may fetch again: what it waited for is on disk."""
        follower = self._followers.get(partition)
        if follower is not None:
            fetcher = self._fetchers.get(follower.leader_id)
            if fetcher is not None:
                fetcher.wake()

    def wake_all(self) -> None:
        """All may fetch again: the disk accepts what they append."""
        for fetcher in self._fetchers.values():
            fetcher.wake()

    def close(self) -> None:
        for fetcher in self._fetchers.values():
            fetcher.close()
        self._fetchers.clear()
        self._followers.clear()
