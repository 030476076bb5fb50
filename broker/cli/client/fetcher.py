"""Records from many partitions, from every leader at the same time."""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from broker.cli.client.client import Client, TopicPartition
from broker.cli.client.connection import Connection
from broker.cli.client.errors import ConnectionLost, TimedOut, Unreachable, check
from broker.cli.client.fetched import Fetched, read_fetched
from broker.cli.client.offsets import READ_COMMITTED, begin_and_end, by_topic
from protocol.errors import ErrorCode
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData

_MAX_WAIT_MS: Final = 500
_MIN_BYTES: Final = 1
_MAX_BYTES: Final = 16 << 20
_PARTITION_MAX_BYTES: Final = 2 << 20
_PAUSE: Final = 0.1

# Somebody else leads the partition now, or is about to.
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
    """Reads on from `positions`, which its user moves after having dealt with what `poll` gave."""

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

    def poll(self, seconds: float) -> dict[TopicPartition, Fetched]:
        """What has arrived, waiting at most so long for it. It may be nothing."""
        try:
            self._ask()
            return self._receive(seconds)
        except (ConnectionLost, Unreachable):
            # The broker may be starting again, or others about to lead its partitions.
            self._leaders.clear()
            self._under_way.clear()
            time.sleep(_PAUSE)
            self._find_leaders()
            return {}

    def stop(self, partitions: Iterable[TopicPartition]) -> None:
        for each in partitions:
            self.positions.pop(each, None)

    def _ask(self) -> None:
        """Send a Fetch to every leader that has none under way."""
        self._find_leaders()
        for leader in {self._leaders[each] for each in self.positions} - self._under_way.keys():
            positions = {each: at for each, at in self.positions.items() if self._leaders[each] == leader}
            request = FetchRequest(
                max_wait_ms=_MAX_WAIT_MS,
                min_bytes=_MIN_BYTES,
                max_bytes=_MAX_BYTES,
                isolation_level=self._isolation,
                topics=[
                    FetchTopic(
                        topic=topic,
                        partitions=[
                            FetchPartition(
                                partition=index,
                                fetch_offset=positions[TopicPartition(topic, index)],
                                partition_max_bytes=_PARTITION_MAX_BYTES,
                            )
                            for index in indexes
                        ],
                    )
                    for topic, indexes in by_topic(positions)
                ],
            )
            connection = self._client.broker(leader, "fetch")
            connection.send(request)
            due = time.monotonic() + _MAX_WAIT_MS / 1000 + self._client.timeout
            self._under_way[leader] = _UnderWay(connection, positions, due)

    def _find_leaders(self) -> None:
        if any(each not in self._leaders for each in self.positions):
            self._leaders = self._client.leaders(list(self.positions))

    def _receive(self, seconds: float) -> dict[TopicPartition, Fetched]:
        found: dict[TopicPartition, Fetched] = {}
        waiting = {under_way.connection: leader for leader, under_way in self._under_way.items()}
        readable, _, _ = select.select(list(waiting), [], [], seconds)
        for under_way in self._under_way.values():
            if under_way.connection not in readable and time.monotonic() > under_way.due:
                address, timeout = under_way.connection.address, self._client.timeout
                raise TimedOut(f"the broker at {address} did not answer within {timeout:g} s")
        for connection in readable:
            asked = self._under_way.pop(waiting[connection]).positions
            answer = connection.receive(FetchResponse)
            check(answer.error_code, f"fetching from {connection.address}")
            for topic in answer.responses:
                for each in topic.partitions:
                    partition = TopicPartition(topic.topic, each.partition_index)
                    # It may have been given up, or begun anew elsewhere, since it was asked for.
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
            self._warn(f"{partition} has no offset {position}; reading on from {self.positions[partition]}")
            return None
        check(data.error_code, f"partition {partition}")
        if not data.records:
            return None
        if not isinstance(data.records, memoryview):
            raise TypeError("records of an answer are views into it")
        aborted = data.aborted_transactions if self._isolation == READ_COMMITTED else None
        return read_fetched(data.records, position, aborted, str(partition))
