"""The cluster behind a bootstrap list: which broker leads or coordinates what, and connections to them."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from typing import Final, TypeVar

from barnabas.client.connection import Address, Connection
from barnabas.client.errors import BrokerError, ClientError, ConnectionLost, Unreachable, check
from barnabas.client.requests import lookup
from barnabas.client.security import PLAINTEXT, Security
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.find_coordinator import FindCoordinatorResponse
from barnabas.protocol.messages.metadata import MetadataResponse, MetadataResponseTopic
from barnabas.protocol.topic_partition import TopicPartition

T = TypeVar("T")

_PAUSE: Final = 0.1
# What a cluster answers while it settles. Asking again soon gives another answer.
_PASSING: Final = frozenset(
    {
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
        ErrorCode.CONCURRENT_TRANSACTIONS,
    }
)


class Client:
    def __init__(
        self,
        bootstrap: Sequence[Address],
        client_id: str = "barnabas",
        timeout: float = 30.0,
        security: Security = PLAINTEXT,
    ) -> None:
        self.timeout = timeout
        self._security = security
        self._bootstrap = bootstrap
        self._client_id = client_id
        self._brokers: dict[int, Address] = {}
        self._controller = -1
        self._coordinators: dict[str, int] = {}
        self._connections: dict[tuple[int, str], Connection] = {}
        self._first: Connection | None = None

    def any_broker(self) -> Connection:
        """A connection to whichever broker answers first, beginning with the bootstrap list."""
        if self._first is not None and not self._first.closed:
            return self._first
        failures = []
        for address in dict.fromkeys((*self._bootstrap, *self._brokers.values())):
            try:
                self._first = Connection(address, self._client_id, self.timeout, self._security)
            except (Unreachable, ConnectionLost) as error:
                failures.append(str(error))
            else:
                return self._first
        raise Unreachable("; ".join(failures))

    def broker(self, node: int, purpose: str = "") -> Connection:
        """A connection to a broker that metadata named. Requests that wait have their own connection, by `purpose`."""
        connection = self._connections.get((node, purpose))
        if connection is None or connection.closed:
            if node not in self._brokers:
                self.metadata([])
            if node not in self._brokers:
                raise BrokerError(ErrorCode.BROKER_NOT_AVAILABLE, f"broker {node}")
            connection = Connection(self._brokers[node], self._client_id, self.timeout, self._security)
            self._connections[node, purpose] = connection
        return connection

    def brokers(self) -> dict[int, Address]:
        self.metadata([])
        return self._brokers

    def controller(self) -> Connection:
        """The broker that changes topics. With KRaft, any broker forwards such requests to the controller."""
        self.metadata([])
        return self.broker(self._controller) if self._controller in self._brokers else self.any_broker()

    def coordinator(self, group: str, purpose: str = "") -> Connection:
        return self.broker(self.coordinator_of(group), purpose)

    def coordinator_of(self, group: str) -> int:
        if group in self._coordinators:
            return self._coordinators[group]

        def attempt() -> int:
            connection = self.any_broker()
            request = lookup.find_coordinator(connection.version(ApiKey.FIND_COORDINATOR), group)
            answer = connection.ask(request, FindCoordinatorResponse)
            (found,) = answer.coordinators
            check(found.error_code, f"group '{group}'", found.error_message)
            self._brokers[found.node_id] = Address(found.host, found.port)
            self._coordinators[group] = found.node_id
            return found.node_id

        return self.settled(attempt)

    def metadata(self, topics: Collection[str] | None, *, create: bool = False) -> MetadataResponse:
        """What the cluster says about these topics, or about all. Errors of single topics stay in the answer."""
        answer = self.any_broker().ask(lookup.metadata(topics, create=create), MetadataResponse)
        check(answer.error_code, "cluster")
        self._brokers = {each.node_id: Address(each.host, each.port) for each in answer.brokers}
        self._controller = answer.controller_id
        return answer

    def topics(self, names: Collection[str] | None) -> list[MetadataResponseTopic]:
        """These topics, or all of them, sorted by name. BrokerError if one does not exist."""

        def attempt() -> list[MetadataResponseTopic]:
            found = self.metadata(names).topics
            for topic in found:
                check(topic.error_code, f"topic '{topic.name}'")
            return sorted(found, key=lambda topic: topic.name or "")

        return self.settled(attempt)

    def partitions(self, topics: Collection[str]) -> dict[TopicPartition, int]:
        """Every partition of these topics with its leader, -1 if it has none at the moment."""
        return {
            TopicPartition(topic.name or "", each.partition_index): each.leader_id
            for topic in (self.topics(topics) if topics else [])
            for each in topic.partitions
        }

    def leaders(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """The leader of each of these partitions. Waits for one that has no leader at the moment."""

        def attempt() -> dict[TopicPartition, int]:
            found = self.partitions({each.topic for each in partitions})
            for each in partitions:
                if each not in found:
                    raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"partition {each}")
                if found[each] < 0:
                    raise BrokerError(ErrorCode.LEADER_NOT_AVAILABLE, f"partition {each}")
            return {each: found[each] for each in partitions}

        return self.settled(attempt)

    def existing(self, partitions: Collection[TopicPartition]) -> list[TopicPartition]:
        """The ones among these partitions that exist."""
        found = {
            TopicPartition(topic.name or "", partition.partition_index)
            for topic in (self.metadata({each.topic for each in partitions}).topics if partitions else [])
            if not topic.error_code
            for partition in topic.partitions
        }
        return [each for each in partitions if each in found]

    def settled(self, attempt: Callable[[], T]) -> T:
        """Try until it works, fails for good, or the timeout is over: elections, loading and restarts are soon over.

        Only for requests that may be sent twice.
        """
        deadline = time.monotonic() + self.timeout
        while True:
            try:
                return attempt()
            except ClientError as error:
                if not self._may_pass(error) or time.monotonic() > deadline:
                    raise
            self._coordinators.clear()
            time.sleep(_PAUSE)

    def _may_pass(self, error: ClientError) -> bool:
        if isinstance(error, BrokerError):
            return error.code in _PASSING
        # A broker that has answered before may be restarting. One that never did is not waited for.
        return isinstance(error, (ConnectionLost, Unreachable)) and bool(self._brokers)

    def forget_connections(self) -> None:
        """Close them all. The next request opens a new one."""
        for connection in (*self._connections.values(), *([self._first] if self._first is not None else [])):
            connection.close()
        self._connections.clear()
        self._first = None

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.forget_connections()
