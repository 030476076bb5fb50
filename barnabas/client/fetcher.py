"""Records from many partitions, fetched from all their leaders at the same time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from barnabas.client.client import Client
from barnabas.client.connection import Connection, readable
from barnabas.client.errors import ClientError, ConnectionLost, TimedOut, Unreachable, check
from barnabas.client.fetched import Fetched, read_fetched
from barnabas.client.offsets import READ_COMMITTED, begin_and_end
from barnabas.client.requests.data import fetch
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.fetch import FetchResponse, PartitionData
from barnabas.protocol.topic_partition import TopicPartition

_MAX_WAIT_MS: Final = 500
_MAX_BYTES: Final = 16 << 20
_PARTITION_MAX_BYTES: Final = 2 << 20
_PAUSE: Final = 0.1

# Another broker leads the partition now, or is about to.
_MOVED: Final = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.OFFSET_NOT_AVAILABLE,
    }
)


class _UnderWay(NamedTuple):
    connection: Connection
    positions: dict[TopicPartition, int]
    due: float


class Fetcher:
    """Reads on from `positions`. The caller moves them when it has dealt with what `poll` returned."""

    def __init__(
        self,
        client: Client,
        positions: Mapping[TopicPartition, int],
        *,
        isolation: int,
        warn: Callable[[str], None],
    ) -> None:
        self.positions = dict(positions)
        self._client = client
        self._isolation = isolation
        self._warn = warn
        self._leaders: dict[TopicPartition, int] = {}
        self._under_way: dict[int, _UnderWay] = {}
        # Since when fetching from a leader has failed again and again, although the cluster still says that it leads.
        self._failing_since: dict[int, float] = {}

    def poll(self, seconds: float) -> dict[TopicPartition, Fetched]:
        """What has arrived, waiting for it up to `seconds`. It may be nothing."""
        self._find_leaders()
        idle: dict[int, dict[TopicPartition, int]] = {}
        for partition, position in self.positions.items():
            leader = self._leaders[partition]
            if leader not in self._under_way:
                idle.setdefault(leader, {})[partition] = position
        requested = [self._request(leader, positions) for leader, positions in idle.items()]
        return self._receive(seconds if all(requested) else 0)

    def stop(self, partitions: Iterable[TopicPartition]) -> None:
        for each in partitions:
            self.positions.pop(each, None)

    def _request(self, leader: int, positions: dict[TopicPartition, int]) -> bool:
        """Send a Fetch to a leader; False if it could not be sent."""
        request = fetch(
            *((topic, index, at) for (topic, index), at in sorted(positions.items())),
            max_wait_ms=_MAX_WAIT_MS,
            max_bytes=_MAX_BYTES,
            partition_max_bytes=_PARTITION_MAX_BYTES,
            isolation_level=self._isolation,
        )
        started = time.monotonic()
        try:
            connection = self._client.broker(leader, "fetch")
            connection.send(request)
        except (ConnectionLost, Unreachable) as error:
            self._failed(leader, started, error)
            return False
        due = time.monotonic() + _MAX_WAIT_MS / 1000 + self._client.timeout
        self._under_way[leader] = _UnderWay(connection, positions, due)
        return True

    def _failed(self, leader: int, started: float, error: ClientError) -> None:
        """The broker may be restarting, or another about to lead its partitions. Look again, until the timeout."""
        since = self._failing_since.setdefault(leader, started)
        if time.monotonic() - since > self._client.timeout:
            raise error
        self._leaders.clear()
        time.sleep(_PAUSE)

    def _find_leaders(self) -> None:
        if any(each not in self._leaders for each in self.positions):
            self._leaders = self._client.leaders(list(self.positions))

    def _receive(self, seconds: float) -> dict[TopicPartition, Fetched]:
        found: dict[TopicPartition, Fetched] = {}
        waiting = {under_way.connection: leader for leader, under_way in self._under_way.items()}
        arrived = readable(waiting, seconds)
        for under_way in self._under_way.values():
            if under_way.connection not in arrived and time.monotonic() > under_way.due:
                address, timeout = under_way.connection.address, self._client.timeout
                raise TimedOut(f"the broker at {address} did not answer within {timeout:g} s")
        for connection in arrived:
            leader = waiting[connection]
            asked = self._under_way.pop(leader).positions
            try:
                answer = connection.receive(FetchResponse)
            except ConnectionLost as error:
                self._failed(leader, time.monotonic(), error)
                continue
            self._failing_since.pop(leader, None)
            check(answer.error_code, f"fetching from {connection.address}")
            for topic in answer.responses:
                for each in topic.partitions:
                    partition = TopicPartition(topic.topic, each.partition_index)
                    # The caller may have stopped it or moved its position since the request.
                    if partition in asked and self.positions.get(partition) == asked[partition]:
                        fetched = self._read(partition, each)
                        if fetched is not None:
                            found[partition] = fetched
        return found

    def _read(self, partition: TopicPartition, data: PartitionData) -> Fetched | None:
        if data.error_code in _MOVED:
            self._leaders.pop(partition, None)
            time.sleep(_PAUSE)
            return None
        position = self.positions[partition]
        if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            begin, end = begin_and_end(self._client, [partition])[partition]
            self.positions[partition] = min(max(position, begin), end)
            self._warn(f"{partition} has no offset {position}; continuing from {self.positions[partition]}")
            return None
        check(data.error_code, f"partition {partition}")
        if not data.records:
            return None
        if not isinstance(data.records, memoryview):
            raise TypeError("the records of an answer are views into it")
        aborted = data.aborted_transactions if self._isolation == READ_COMMITTED else None
        return read_fetched(data.records, position, aborted, str(partition))
