"""What a check holds in its hands: connections, names of its own, and a way to say what it expects.

Everything that a check makes carries the name of the run and of the check, and is removed: groups and transactions when
the check ends, topics when the run does.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple, TypeVar

from broker.cli.client.connection import Address
from broker.cli.client.errors import name_of
from broker.cli.conformance import requests
from broker.cli.conformance.catalogue import Check
from broker.cli.conformance.target import Target
from broker.cli.conformance.verdict import Failed, NotApplicable, Step
from broker.cli.conformance.wire import Deadline, Wire
from protocol.api import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.describe_groups import DescribeGroupsRequest
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from protocol.records.batch import BatchHeader
from protocol.schema import Message, Versions

T = TypeVar("T")

GROUP: Final = 0
TRANSACTION: Final = 1

ANY_VERSION: Final = Versions(0, 32767)

# What a coordinator says while it is being made or loaded, and soon no longer.
SETTLING: Final = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.CONCURRENT_TRANSACTIONS,
    }
)
_PAUSE: Final = 0.01
_CLEANING_SECONDS: Final = 10.0


class Topic(NamedTuple):
    name: str
    topic_id: bytes
    leaders: Mapping[int, int]


class Read(NamedTuple):
    batches: list[tuple[BatchHeader, memoryview]]
    aborted: set[tuple[int, int]]
    """The aborted transactions that answers listed: a producer's id, and its first offset."""

    @property
    def values(self) -> list[bytes | None]:
        return [value for _, data in self.batches for value in requests.values(data)]


class Probe:
    def __init__(self, target: Target, check: Check, run: str, seconds: float) -> None:
        self.target = target
        self.check = check
        self.deadline = Deadline(seconds)
        self.steps: list[Step] = []
        self.prefix = f"{run}-{check.name.replace('.', '-')}"
        self.topics: dict[str, Topic] = {}
        self._groups: dict[str, list[tuple[str, str | None]]] = {}
        self._transactional_ids: list[str] = []
        self._wires: list[Wire] = []
        self._nodes: dict[int, Wire] = {}
        self._coordinators: dict[tuple[int, str], int] = {}
        self._serial = 0

    # --- what is expected ---

    def expect(self, what: str, seen: object, expected: object) -> None:
        """`what` is equal to `expected`."""
        self.require(seen == expected, f"{what} to be {expected!r}", f"{seen!r}")

    def expect_error(self, what: str, code: int, *expected: ErrorCode) -> None:
        """`what` has one of these error codes, or NONE if none are named."""
        allowed = expected or (ErrorCode.NONE,)
        names = " or ".join(each.name for each in allowed)
        self.require(code in allowed, f"{what} to be answered with {names}", name_of(code))

    def require(self, holds: bool, expected: str, seen: str) -> None:
        self.steps.append(Step(expected, seen))
        if not holds:
            raise Failed(expected, seen)

    def expect_closed(self, wire: Wire, what: str) -> None:
        """The broker closes the connection instead of answering."""
        body = wire.receive(f"the connection to be closed after {what}")
        seen = "it was closed" if body is None else f"a frame of {len(body)} bytes came"
        self.require(body is None, f"the connection to be closed after {what}", seen)

    def until(self, what: str, attempt: Callable[[], T], good: Callable[[T], bool]) -> T:
        """Ask again until an answer is good; for what comes about by itself, which nothing announces."""
        late = f"not within the check's limit of {self.deadline.seconds:g} s"
        while True:
            try:
                value = attempt()
            except Failed:
                if self.deadline.left <= 0:
                    raise Failed(what, late) from None
                raise
            if good(value):
                return value
            if self.deadline.left <= 0:
                raise Failed(what, late)
            time.sleep(_PAUSE)

    # --- asking ---

    def version(self, key: ApiKey, wanted: Versions | None = None) -> int:
        """The highest version that the check needs, the broker advertises and this tool knows."""
        found = self.target.common(key, wanted or self.check.needs.get(key, ANY_VERSION))
        if found is None:
            raise NotApplicable(f"{key.api_name} is not advertised in a version that this needs")
        return found.highest

    def versions(self, key: ApiKey) -> Versions:
        found = self.target.common(key, self.check.needs.get(key, ANY_VERSION))
        if found is None:
            raise NotApplicable(f"{key.api_name} is not advertised in a version that this needs")
        return found

    def connect(self, address: Address | None = None) -> Wire:
        """A connection of its own, to the broker that was named on the command line if to no other."""
        wire = Wire(address or self.target.bootstrap, self.deadline)
        self._wires.append(wire)
        return wire

    def node(self, node: int) -> Wire:
        """The connection that the check's plain questions to a broker share."""
        wire = self._nodes.get(node)
        if wire is None or wire.closed:
            wire = self._nodes[node] = self.connect(self.target.nodes.get(node))
        return wire

    def ask(self, key: ApiKey, message: Message, version: int | None = None, *, node: int = -1) -> Any:
        return self.node(node).ask(key, message, self.version(key) if version is None else version)

    def ask_controller(self, key: ApiKey, message: Message, version: int | None = None) -> Any:
        return self.ask(key, message, version, node=self.target.controller)

    # --- topics ---

    def name(self, suffix: str = "") -> str:
        """A name of this check's own, another one every time."""
        self._serial += 1
        return f"{self.prefix}-{self._serial}{suffix}"

    def topic(self, partitions: int = 1, configs: Mapping[str, str] | None = None) -> str:
        """A new topic, ready to be used."""
        name = self.name()
        created = self.create(requests.new_topic(name, partitions, -1, configs=list((configs or {}).items())))
        (answer,) = created.topics
        if answer.error_code:
            raise Failed("a topic to work with", f"CreateTopics answered {name_of(answer.error_code)}")
        self.await_topic(name, partitions)
        return name

    def topic_of_one_leader(self, partitions: int) -> str:
        """A new topic whose partitions all have the same leader, so that one request can be about all of them."""
        if len(self.target.nodes) == 1:
            return self.topic(partitions)
        name, node = self.name(), min(self.target.nodes)
        self.create(requests.new_topic(name, -1, -1, assignments=[(index, [node]) for index in range(partitions)]))
        self.await_topic(name, partitions)
        return name

    def create(self, *topics: Any, validate_only: bool = False, version: int | None = None) -> Any:
        """CreateTopics; what it creates is removed when the check ends."""
        wanted = self.check.needs.get(ApiKey.CREATE_TOPICS, Versions(4, 32767))
        version = self.version(ApiKey.CREATE_TOPICS, wanted) if version is None else version
        answer = self.ask_controller(
            ApiKey.CREATE_TOPICS, requests.create(*topics, validate_only=validate_only), version
        )
        for topic in answer.topics:
            if not topic.error_code and not validate_only:
                self.topics[topic.name] = Topic(topic.name, topic.topic_id, {})
        return answer

    def await_topic(self, name: str, partitions: int) -> None:
        """Wait until every partition is led, and its leader knows."""

        def led() -> Any:
            (found,) = self.metadata(name).topics
            return found

        found = self.until(
            "a new topic to get leaders",
            led,
            lambda topic: (
                not topic.error_code
                and len(topic.partitions) == partitions
                and all(each.leader_id >= 0 and not each.error_code for each in topic.partitions)
            ),
        )
        leaders = {each.partition_index: each.leader_id for each in found.partitions}
        self.topics[name] = Topic(name, found.topic_id, leaders)
        for index in leaders:
            self.until(
                "the leader of a new partition to know it",
                lambda index=index: self.list_offset(name, index, requests.LATEST),  # type: ignore[misc]
                lambda found: not found.error_code,
            )

    def metadata(self, *names: str) -> Any:
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name=name) for name in names], allow_auto_topic_creation=False
        )
        return self.ask(ApiKey.METADATA, request, self.version(ApiKey.METADATA, Versions(4, 32767)))

    def reference(self, name: str, by_id: bool) -> str | bytes:
        """How a request names a topic: by its name or, in newer versions, by its id."""
        if not by_id:
            return name
        topic = self.topics.get(name)
        return topic.topic_id if topic is not None else requests.UNKNOWN_ID

    def leader(self, name: str, partition: int = 0) -> int:
        topic = self.topics.get(name)
        return -1 if topic is None else topic.leaders.get(partition, -1)

    # --- records ---

    def produce(self, topic: str, records: bytes | None, partition: int = 0, **fields: Any) -> Any:
        """Produce to one partition; its part of the answer."""
        version = self.version(ApiKey.PRODUCE)
        request = requests.produce((self.reference(topic, version >= 13), partition, records), **fields)
        answer = self.ask(ApiKey.PRODUCE, request, version, node=self.leader(topic, partition))
        return self.only(answer.responses, "partition_responses")

    def append(self, topic: str, *values: bytes, partition: int = 0, **fields: Any) -> int:
        """Append records that are fine; the offset of the first."""
        answer = self.produce(topic, requests.batch(*values, **fields), partition)
        self.expect_error("Produce", answer.error_code)
        return int(answer.base_offset)

    def fetch(self, topic: str, offset: int, partition: int = 0, **fields: Any) -> Any:
        """Fetch from one partition; its part of the answer."""
        version = self.version(ApiKey.FETCH)
        request = requests.fetch((self.reference(topic, version >= 13), partition, offset), **fields)
        answer = self.ask(ApiKey.FETCH, request, version, node=self.leader(topic, partition))
        if version >= 7:
            self.expect_error("Fetch", answer.error_code)
        return self.only(answer.responses, "partitions")

    def read(self, topic: str, offset: int = 0, partition: int = 0, **fields: Any) -> Read:
        """Fetch on to the end: an answer may stop wherever the broker likes, at the end of a segment for example."""
        records: list[tuple[BatchHeader, memoryview]] = []
        aborted: set[tuple[int, int]] = set()
        while True:
            found = self.fetch(topic, offset, partition, **fields)
            self.expect_error("Fetch", found.error_code)
            aborted.update((each.producer_id, each.first_offset) for each in found.aborted_transactions or ())
            got = requests.batches(found.records)
            records += [each for each in got if each[0].next_offset > offset]
            if not got or records[-1][0].next_offset <= offset:
                return Read(records, aborted)
            offset = records[-1][0].next_offset

    def list_offset(self, topic: str, partition: int, timestamp: int, **fields: Any) -> Any:
        request = requests.list_offsets((topic, partition, timestamp), **fields)
        version = self.version(ApiKey.LIST_OFFSETS)
        answer = self.ask(ApiKey.LIST_OFFSETS, request, version, node=self.leader(topic, partition))
        return self.only(answer.topics, "partitions")

    def end_offset(self, topic: str, partition: int = 0, **fields: Any) -> int:
        found = self.list_offset(topic, partition, requests.LATEST, **fields)
        self.expect_error("ListOffsets", found.error_code)
        return int(found.offset)

    def only(self, topics: list[Any], field: str) -> Any:
        """The one partition of the one topic that was asked about."""
        count = sum(len(getattr(topic, field)) for topic in topics)
        self.require(count == 1, "an answer about the one partition that was asked about", f"about {count}")
        return getattr(next(topic for topic in topics if getattr(topic, field)), field)[0]

    # --- coordinators ---

    def group(self) -> str:
        name = self.name()
        self._groups[name] = []
        return name

    def joined(self, group: str, member_id: str, instance_id: str | None = None) -> None:
        """Note a member that is to be removed when the check ends."""
        if member_id and (member_id, instance_id) not in self._groups.setdefault(group, []):
            self._groups[group].append((member_id, instance_id))

    def transactional_id(self) -> str:
        name = self.name()
        self._transactional_ids.append(name)
        return name

    def coordinator(self, key: str, key_type: int = GROUP) -> int:
        """The broker that coordinates a group or a transactional id; it has loaded what it has to when this returns."""
        if (key_type, key) not in self._coordinators:
            found = self.until(
                "a coordinator", lambda: self.find_coordinator(key, key_type), lambda found: not found.error_code
            )
            self._coordinators[key_type, key] = found.node_id
            if key_type == GROUP and ApiKey.DESCRIBE_GROUPS in self.target.versions:
                question = DescribeGroupsRequest(groups=[key])
                self.until(
                    "the coordinator to be ready",
                    lambda: self.ask(ApiKey.DESCRIBE_GROUPS, question, node=found.node_id).groups[0].error_code,
                    lambda code: code not in SETTLING,
                )
        return self._coordinators[key_type, key]

    def find_coordinator(self, key: str, key_type: int = GROUP) -> Any:
        version = self.version(ApiKey.FIND_COORDINATOR)
        answer = self.ask(ApiKey.FIND_COORDINATOR, requests.find_coordinator(version, key, key_type=key_type), version)
        return answer.coordinators[0] if version >= 4 else answer

    def ask_coordinator(
        self, coordinated: str, key: ApiKey, message: Message, version: int | None = None, *, key_type: int = GROUP
    ) -> Any:
        return self.ask(key, message, version, node=self.coordinator(coordinated, key_type))

    # --- the end ---

    def clean(self) -> None:
        """Remove what the check made, but its topics, which the run removes together: that is much cheaper for brokers.

        What cannot be removed (the connection may be gone) is left to the broker.
        """
        self.deadline = Deadline(_CLEANING_SECONDS)
        for wire in self._wires:
            wire.close()
        self._wires.clear()
        self._nodes.clear()
        for transactional_id in self._transactional_ids:
            with suppress(Failed, NotApplicable):
                self._end_transaction(transactional_id)
        for group, members in self._groups.items():
            with suppress(Failed, NotApplicable):
                self._remove_group(group, members)
        for wire in self._wires:
            wire.close()

    def _end_transaction(self, transactional_id: str) -> None:
        """A new owner of the id ends whatever the last one left open."""
        request = requests.init_producer_id(transactional_id)
        node = self.coordinator(transactional_id, TRANSACTION)
        self.until(
            "the transaction to be ended",
            lambda: self.ask(ApiKey.INIT_PRODUCER_ID, request, node=node).error_code,
            lambda code: code not in SETTLING,
        )

    def _remove_group(self, group: str, members: list[tuple[str, str | None]]) -> None:
        node = self.coordinator(group)
        version = self.version(ApiKey.LEAVE_GROUP, ANY_VERSION)
        if members and version >= 3:
            self.ask(ApiKey.LEAVE_GROUP, requests.leave(version, group, *members), version, node=node)
        else:
            for member in members:
                self.ask(ApiKey.LEAVE_GROUP, requests.leave(version, group, member), version, node=node)
        version = self.version(ApiKey.DELETE_GROUPS, ANY_VERSION)
        self.ask(ApiKey.DELETE_GROUPS, requests.delete_groups(group), version, node=node)
