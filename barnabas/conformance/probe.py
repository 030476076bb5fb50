"""What a check works with: connections, unique names, and ways to state expectations.

Everything that a check creates is named after the run and the check. Groups and transactions are removed when the check
ends, topics when the run ends.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple, TypeVar

from barnabas.client.connection import Address
from barnabas.client.errors import name_of
from barnabas.client.requests import admin, data, groups, lookup, transactions
from barnabas.client.requests.data import LATEST
from barnabas.client.requests.lookup import GROUP, TRANSACTION
from barnabas.client.requests.records import batch, read_batches, read_values
from barnabas.conformance.catalogue import Check
from barnabas.conformance.strict_wire import Deadline, StrictWire
from barnabas.conformance.target import Target
from barnabas.conformance.verdict import Failed, NotApplicable, Step
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.describe_groups import DescribeGroupsRequest
from barnabas.protocol.records.batch import BatchHeader
from barnabas.protocol.schema import Message, Versions

T = TypeVar("T")

# A topic id that no broker assigns.
UNKNOWN_ID: Final = bytes(range(16))

ANY_VERSION: Final = Versions(0, 32767)

# The errors of a coordinator that is being created or loaded; they are temporary.
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
    """The aborted transactions listed in responses: producer id and first offset."""

    @property
    def values(self) -> list[bytes | None]:
        return [value for _, data in self.batches for value in read_values(data)]


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
        self._endings: list[Callable[[], object]] = []
        self._wires: list[StrictWire] = []
        self._nodes: dict[int, StrictWire] = {}
        self._coordinators: dict[tuple[int, str], int] = {}
        self._serial = 0

    # --- expectations ---

    def expect(self, what: str, seen: object, expected: object) -> None:
        """Expect `what` to equal `expected`."""
        self.require(seen == expected, f"{what} to be {expected!r}", f"{seen!r}")

    def expect_error(self, what: str, code: int, *expected: ErrorCode) -> None:
        """Expect `what` to have one of these error codes, or NONE if none are given."""
        allowed = expected or (ErrorCode.NONE,)
        names = " or ".join(each.name for each in allowed)
        self.require(code in allowed, f"{what} to be answered with {names}", name_of(code))

    def require(self, holds: bool, expected: str, seen: str) -> None:
        self.steps.append(Step(expected, seen))
        if not holds:
            raise Failed(expected, seen)

    def expect_closed(self, wire: StrictWire, what: str) -> None:
        """Expect the broker to close the connection without a response."""
        body = wire.receive(f"the connection to be closed after {what}")
        seen = "it was closed" if body is None else f"a frame of {len(body)} bytes came"
        self.require(body is None, f"the connection to be closed after {what}", seen)

    def until(self, what: str, attempt: Callable[[], T], good: Callable[[T], bool]) -> T:
        """Ask again until the answer is good, for changes that the broker does not announce."""
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

    # --- requests ---

    def version(self, key: ApiKey, wanted: Versions | None = None) -> int:
        """The highest version that suits the check, is advertised by the broker and is known to this tool."""
        found = self.target.common(key, wanted or self.check.needs.get(key, ANY_VERSION))
        if found is None:
            raise NotApplicable(f"{key.api_name} is not advertised in a version that this check needs")
        return found.highest

    def versions(self, key: ApiKey) -> Versions:
        found = self.target.common(key, self.check.needs.get(key, ANY_VERSION))
        if found is None:
            raise NotApplicable(f"{key.api_name} is not advertised in a version that this check needs")
        return found

    def connect(self, address: Address | None = None) -> StrictWire:
        """A separate connection, by default to the broker named on the command line."""
        wire = StrictWire(address or self.target.bootstrap, self.deadline, self.target.security)
        self._wires.append(wire)
        return wire

    def node(self, node: int) -> StrictWire:
        """The connection to a broker that the check's ordinary requests share."""
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
        """A name unique to this check, different for every call."""
        self._serial += 1
        return f"{self.prefix}-{self._serial}{suffix}"

    def topic(self, partitions: int = 1, configs: Mapping[str, str] | None = None) -> str:
        """Create a topic, ready for use."""
        name = self.name()
        created = self.create(admin.new_topic(name, partitions, -1, configs=list((configs or {}).items())))
        (answer,) = created.topics
        if answer.error_code:
            raise Failed("a topic to work with", f"CreateTopics answered {name_of(answer.error_code)}")
        self.await_topic(name, partitions)
        return name

    def topic_of_one_leader(self, partitions: int) -> str:
        """Create a topic whose partitions all have the same leader, so that one request can cover all of them."""
        if len(self.target.nodes) == 1:
            return self.topic(partitions)
        name, node = self.name(), min(self.target.nodes)
        self.create(admin.new_topic(name, -1, -1, assignments=[(index, [node]) for index in range(partitions)]))
        self.await_topic(name, partitions)
        return name

    def create(self, *topics: Any, validate_only: bool = False, version: int | None = None) -> Any:
        """Send CreateTopics. The topics are removed at the end of the run."""
        wanted = self.check.needs.get(ApiKey.CREATE_TOPICS, Versions(4, 32767))
        version = self.version(ApiKey.CREATE_TOPICS, wanted) if version is None else version
        answer = self.ask_controller(
            ApiKey.CREATE_TOPICS, admin.create_topics(*topics, validate_only=validate_only), version
        )
        for topic in answer.topics:
            if not topic.error_code and not validate_only:
                self.topics[topic.name] = Topic(topic.name, topic.topic_id, {})
        return answer

    def await_topic(self, name: str, partitions: int) -> None:
        """Wait until every partition has a leader that knows it leads."""

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
                lambda index=index: self.list_offset(name, index, LATEST),  # type: ignore[misc]
                lambda found: not found.error_code,
            )

    def metadata(self, *names: str) -> Any:
        return self.ask(ApiKey.METADATA, lookup.metadata(names), self.version(ApiKey.METADATA, Versions(4, 32767)))

    def reference(self, name: str, by_id: bool) -> str | bytes:
        """How a request identifies a topic: by name or, in newer versions, by id."""
        if not by_id:
            return name
        topic = self.topics.get(name)
        return topic.topic_id if topic is not None else UNKNOWN_ID

    def leader(self, name: str, partition: int = 0) -> int:
        topic = self.topics.get(name)
        return -1 if topic is None else topic.leaders.get(partition, -1)

    # --- records ---

    def produce(self, topic: str, records: bytes | None, partition: int = 0, **fields: Any) -> Any:
        """Produce to one partition. Return its part of the response."""
        version = self.version(ApiKey.PRODUCE)
        request = data.produce((self.reference(topic, version >= 13), partition, records), **fields)
        answer = self.ask(ApiKey.PRODUCE, request, version, node=self.leader(topic, partition))
        return self.only(answer.responses, "partition_responses")

    def append(self, topic: str, *values: bytes, partition: int = 0, **fields: Any) -> int:
        """Append valid records. Return the offset of the first."""
        answer = self.produce(topic, batch(*values, **fields), partition)
        self.expect_error("Produce", answer.error_code)
        return int(answer.base_offset)

    def fetch(self, topic: str, offset: int, partition: int = 0, **fields: Any) -> Any:
        """Fetch from one partition. Return its part of the response."""
        version = self.version(ApiKey.FETCH)
        request = data.fetch((self.reference(topic, version >= 13), partition, offset), **fields)
        answer = self.ask(ApiKey.FETCH, request, version, node=self.leader(topic, partition))
        if version >= 7:
            self.expect_error("Fetch", answer.error_code)
        return self.only(answer.responses, "partitions")

    def read(self, topic: str, offset: int = 0, partition: int = 0, **fields: Any) -> Read:
        """Fetch to the end of the log. A response may stop anywhere, for example at the end of a segment."""
        records: list[tuple[BatchHeader, memoryview]] = []
        aborted: set[tuple[int, int]] = set()
        while True:
            found = self.fetch(topic, offset, partition, **fields)
            self.expect_error("Fetch", found.error_code)
            aborted.update((each.producer_id, each.first_offset) for each in found.aborted_transactions or ())
            got = read_batches(found.records)
            records += [each for each in got if each[0].next_offset > offset]
            if not got or records[-1][0].next_offset <= offset:
                return Read(records, aborted)
            offset = records[-1][0].next_offset

    def list_offset(self, topic: str, partition: int, timestamp: int, **fields: Any) -> Any:
        request = data.list_offsets((topic, partition, timestamp), **fields)
        version = self.version(ApiKey.LIST_OFFSETS)
        answer = self.ask(ApiKey.LIST_OFFSETS, request, version, node=self.leader(topic, partition))
        return self.only(answer.topics, "partitions")

    def end_offset(self, topic: str, partition: int = 0, **fields: Any) -> int:
        found = self.list_offset(topic, partition, LATEST, **fields)
        self.expect_error("ListOffsets", found.error_code)
        return int(found.offset)

    def only(self, topics: list[Any], field: str) -> Any:
        """The one partition of the one topic in the request."""
        count = sum(len(getattr(topic, field)) for topic in topics)
        self.require(count == 1, "a response for exactly the requested partition", f"about {count}")
        return getattr(next(topic for topic in topics if getattr(topic, field)), field)[0]

    # --- coordinators ---

    def group(self) -> str:
        name = self.name()
        self._groups[name] = []
        return name

    def joined(self, group: str, member_id: str, instance_id: str | None = None) -> None:
        """Register a member to be removed when the check ends."""
        if member_id and (member_id, instance_id) not in self._groups.setdefault(group, []):
            self._groups[group].append((member_id, instance_id))

    def at_end(self, ending: Callable[[], object]) -> None:
        """Do this when the check ends, before its groups are removed."""
        self._endings.append(ending)

    def transactional_id(self) -> str:
        name = self.name()
        self._transactional_ids.append(name)
        return name

    def coordinator(self, key: str, key_type: int = GROUP) -> int:
        """The broker that coordinates a group or a transactional id. It has finished loading when this returns."""
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
        answer = self.ask(ApiKey.FIND_COORDINATOR, lookup.find_coordinator(version, key, key_type=key_type), version)
        return answer.coordinators[0] if version >= 4 else answer

    def ask_coordinator(
        self, coordinated: str, key: ApiKey, message: Message, version: int | None = None, *, key_type: int = GROUP
    ) -> Any:
        return self.ask(key, message, version, node=self.coordinator(coordinated, key_type))

    # --- clean-up ---

    def clean(self) -> None:
        """Remove what the check created, except topics: the run removes them together, which is much cheaper.

        What cannot be removed (the connection may be gone) stays in the broker.
        """
        self.deadline = Deadline(_CLEANING_SECONDS)
        for wire in self._wires:
            wire.close()
        self._wires.clear()
        self._nodes.clear()
        for transactional_id in self._transactional_ids:
            with suppress(Failed, NotApplicable):
                self._end_transaction(transactional_id)
        for ending in self._endings:
            with suppress(Failed, NotApplicable):
                ending()
        for group, members in self._groups.items():
            with suppress(Failed, NotApplicable):
                self._remove_group(group, members)
        for wire in self._wires:
            wire.close()

    def _end_transaction(self, transactional_id: str) -> None:
        """A new owner of the id ends any transaction that the last one left open."""
        request = transactions.init_producer_id(transactional_id)
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
            self.ask(ApiKey.LEAVE_GROUP, groups.leave_group(version, group, *members), version, node=node)
        else:
            for member in members:
                self.ask(ApiKey.LEAVE_GROUP, groups.leave_group(version, group, member), version, node=node)
        version = self.version(ApiKey.DELETE_GROUPS, ANY_VERSION)
        self.ask(ApiKey.DELETE_GROUPS, groups.delete_groups(group), version, node=node)
