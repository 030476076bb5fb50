"""Transactions in both flows: all or nothing, and the errors for invalid requests."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from barnabas.client.requests import groups, transactions
from barnabas.client.requests.lookup import TRANSACTION
from barnabas.client.requests.records import batch, read_values
from barnabas.conformance.catalogue import Room, parse_need
from barnabas.conformance.members import stable
from barnabas.conformance.probe import Probe
from barnabas.conformance.producers import CLASSIC, IMPLICIT, Flow, Producer
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from barnabas.protocol.messages.describe_transactions import DescribeTransactionsRequest
from barnabas.protocol.messages.list_transactions import ListTransactionsRequest
from barnabas.protocol.records.control import ControlType, read_end_transaction_marker

room = Room("transactions", "Transactions")

COMMITTED: Final = 1
# A broker may assign producer ids without supporting transactions; EndTxn tells the difference.
INIT: Final = ("InitProducerId", "FindCoordinator 1+", "EndTxn")

FlowBody = Callable[[Flow, Probe], None]


def both(name: str, stands_on: str = "", *needs: str, offsets: bool = False) -> Callable[[FlowBody], FlowBody]:
    """A check that runs with both flows, as `classic-NAME` and `implicit-NAME`."""

    def add(body: FlowBody) -> FlowBody:
        rule = " ".join((body.__doc__ or "").split())
        for flow in (CLASSIC, IMPLICIT):
            all_needs = (*(flow.needs_offsets if offsets else flow.needs), *needs)
            room.add(
                f"{flow.name}-{name}",
                f"{rule} ({flow.title})",
                flow.kip if stands_on in ("", flow.kip) else f"{flow.kip}; {stands_on}",
                partial(body, flow),
                dict(map(parse_need, all_needs)),
                flow.features,
            )
        return body

    return add


def _producer(probe: Probe, flow: Flow = CLASSIC, transactional_id: str | None = None) -> Producer:
    return Producer(probe, transactional_id or probe.transactional_id(), flow).begin()


def _values(probe: Probe, topic: str, isolation_level: int, partition: int = 0) -> list[bytes | None]:
    """What a client with this isolation level returns to its user: it drops the aborted records in a response."""
    found = probe.read(topic, 0, partition, isolation_level=isolation_level)
    if isolation_level != COMMITTED:
        return found.values
    waiting = sorted(found.aborted, key=lambda each: each[1])
    aborted: set[int] = set()
    kept: list[bytes | None] = []
    for header, data in found.batches:
        while waiting and waiting[0][1] <= header.last_offset:
            aborted.add(waiting.pop(0)[0])
        if header.is_control:
            aborted.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in aborted):
            kept += read_values(data)
    return kept


def _await_end(probe: Probe, topic: str, partition: int = 0) -> None:
    """Wait for the markers, which may be written after the EndTxn response."""
    probe.until(
        "the markers to be written",
        lambda: probe.fetch(topic, 0, partition),
        lambda found: found.last_stable_offset == found.high_watermark,
    )


@both("commit")
def commit(flow: Flow, probe: Probe) -> None:
    """read_committed returns committed records."""
    topic, producer = probe.topic(), _producer(probe, flow)
    producer.write(topic, b"one", b"two")
    producer.commit()
    _await_end(probe, topic)
    probe.expect("the values", _values(probe, topic, COMMITTED), [b"one", b"two"])


@both("abort")
def abort(flow: Flow, probe: Probe) -> None:
    """read_committed never returns aborted records; read_uncommitted does."""
    topic, producer = probe.topic(), _producer(probe, flow)
    producer.write(topic, b"lost")
    producer.abort()
    _await_end(probe, topic)
    probe.append(topic, b"kept")
    probe.expect("the values with read_committed", _values(probe, topic, COMMITTED), [b"kept"])
    probe.expect("the values with read_uncommitted", _values(probe, topic, 0), [b"lost", b"kept"])


@both("open-is-not-read", "", "ListOffsets 2+")
def open_is_not_read(flow: Flow, probe: Probe) -> None:
    """read_committed does not return the records of an open transaction, or anything after them, until it ends."""
    topic, producer = probe.topic(), _producer(probe, flow)
    probe.append(topic, b"before")
    producer.write(topic, b"open")
    probe.append(topic, b"after")
    found = probe.fetch(topic, 0, isolation_level=COMMITTED)
    probe.expect("the last stable offset", found.last_stable_offset, 1)
    probe.expect("the values", _values(probe, topic, COMMITTED), [b"before"])
    probe.expect("the end for read_committed", probe.end_offset(topic, isolation_level=COMMITTED), 1)
    probe.expect("the end for read_uncommitted", probe.end_offset(topic), 3)
    producer.commit()
    _await_end(probe, topic)
    probe.expect("the values then", _values(probe, topic, COMMITTED), [b"before", b"open", b"after"])


@both("markers")
def markers(flow: Flow, probe: Probe) -> None:
    """A control batch at the end of a transaction says whether it was committed, and takes up an offset."""
    topic, producer = probe.topic(), _producer(probe, flow)
    for committed in (True, False):
        producer.write(topic, b"value")
        producer.end(committed)
        _await_end(probe, topic)
    control = [(header, data) for header, data in probe.read(topic).batches if header.is_control]
    probe.expect("the offsets of the control batches", [header.base_offset for header, _ in control], [1, 3])
    found = [read_end_transaction_marker(data, header) for header, data in control]
    kinds = [None if marker is None else marker.control_type is ControlType.COMMIT for marker in found]
    probe.expect("whether they commit", kinds, [True, False])


@both("aborted-list")
def aborted_list(flow: Flow, probe: Probe) -> None:
    """A read_committed response lists its aborted transactions, each with producer id and first offset."""
    topic, producer = probe.topic(), _producer(probe, flow)
    probe.append(topic, b"plain")
    for _ in range(2):
        producer.write(topic, b"lost")
        producer.abort()
        _await_end(probe, topic)
    listed = probe.read(topic, isolation_level=COMMITTED).aborted
    seen = sorted((producer_id == producer.id, first) for producer_id, first in listed)
    probe.expect("the aborted transactions", seen, [(True, 1), (True, 3)])
    listed = probe.read(topic).aborted
    probe.expect("those for read_uncommitted", len(listed), 0)


@both("several-partitions")
def several_partitions(flow: Flow, probe: Probe) -> None:
    """A transaction over several partitions ends in all of them."""
    topic, producer = probe.topic(partitions=3), _producer(probe, flow)
    for index in range(3):
        producer.write(topic, b"value", partition=index)
    producer.commit()
    for index in range(3):
        _await_end(probe, topic, index)
        probe.expect(f"the values of partition {index}", _values(probe, topic, COMMITTED, index), [b"value"])


@both("one-after-the-other")
def one_after_the_other(flow: Flow, probe: Probe) -> None:
    """A producer can run one transaction after another; each is committed or aborted independently."""
    topic, producer = probe.topic(), _producer(probe, flow)
    for number in range(4):
        producer.write(topic, b"%d" % number)
        producer.end(number % 2 == 0)
    _await_end(probe, topic)
    probe.expect("the values", _values(probe, topic, COMMITTED), [b"0", b"2"])


@both("zombie-fenced", "KIP-98")
def zombie_fenced(flow: Flow, probe: Probe) -> None:
    """After another producer has taken over the transactional id, the old one can neither write nor commit."""
    topic, before = probe.topic(), _producer(probe, flow)
    before.write(topic, b"lost")
    after = _producer(probe, flow, before.transactional_id)
    probe.require(after.epoch > before.epoch, "a higher epoch", f"{before.epoch}, then {after.epoch}")
    fenced = ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED
    probe.expect_error("its Produce", before.send(topic, b"zombie").error_code, *fenced)
    probe.expect_error("its EndTxn", before.end(True).error_code, *fenced)
    _await_end(probe, topic)
    probe.expect("the values", _values(probe, topic, COMMITTED), [])


@both("taking-over-aborts", "KIP-98")
def taking_over_aborts(flow: Flow, probe: Probe) -> None:
    """InitProducerId aborts a transaction that its transactional id left open."""
    topic, before = probe.topic(), _producer(probe, flow)
    before.write(topic, b"lost")
    _producer(probe, flow, before.transactional_id)
    _await_end(probe, topic)
    probe.append(topic, b"kept")
    probe.expect("the values", _values(probe, topic, COMMITTED), [b"kept"])


def _offset(probe: Probe, group: str, topic: str, **fields: Any) -> Any:
    version = probe.version(ApiKey.OFFSET_FETCH)
    request = groups.offset_fetch(version, {group: [(probe.reference(topic, version >= 10), [0])]}, **fields)
    answer = probe.ask_coordinator(group, ApiKey.OFFSET_FETCH, request, version)
    return probe.only(answer.groups[0].topics if version >= 8 else answer.topics, "partitions")


def _await_offset(probe: Probe, group: str, topic: str) -> int:
    """The committed offset, once no open transaction blocks it."""
    found = probe.until(
        "the offset to be stable",
        lambda: _offset(probe, group, topic, require_stable=True),
        lambda found: found.error_code != ErrorCode.UNSTABLE_OFFSET_COMMIT,
    )
    return int(found.committed_offset)


@both("offsets-committed", "KIP-447", "OffsetFetch 7+", offsets=True)
def offsets_committed(flow: Flow, probe: Probe) -> None:
    """Offsets of a transaction are visible only after it commits; with require_stable, UNSTABLE_OFFSET_COMMIT until
    then."""
    topic, group, producer = probe.topic(), probe.group(), _producer(probe, flow)
    producer.commit_offset(group, topic, 42)
    probe.expect("the offset while it is open", _offset(probe, group, topic).committed_offset, -1)
    found = _offset(probe, group, topic, require_stable=True)
    probe.expect_error("the offset, to be stable", found.error_code, ErrorCode.UNSTABLE_OFFSET_COMMIT)
    producer.commit()
    probe.expect("the offset after", _await_offset(probe, group, topic), 42)


@both("offsets-aborted", "KIP-98", "OffsetFetch 7+", offsets=True)
def offsets_aborted(flow: Flow, probe: Probe) -> None:
    """Offsets of an aborted transaction are discarded."""
    topic, group, producer = probe.topic(), probe.group(), _producer(probe, flow)
    producer.commit_offset(group, topic, 42)
    producer.abort()
    probe.expect("the offset", _await_offset(probe, group, topic), -1)


@both("offsets-of-a-generation", "KIP-447", "JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup", offsets=True)
def offsets_of_a_generation(flow: Flow, probe: Probe) -> None:
    """TxnOffsetCommit with another generation gets ILLEGAL_GENERATION, with an unknown member id UNKNOWN_MEMBER_ID."""
    topic, producer = probe.topic(), _producer(probe, flow)
    (member,) = stable(probe, probe.group())
    group = member.group
    if flow.adds:
        probe.expect_error("AddOffsetsToTxn", producer.add_offsets(group))
    code = producer.send_offset(group, topic, 1, member=member.id, generation=member.generation + 1)
    probe.expect_error("another generation", code, ErrorCode.ILLEGAL_GENERATION)
    code = producer.send_offset(group, topic, 1, member="nobody", generation=member.generation)
    probe.expect_error("a stranger", code, ErrorCode.UNKNOWN_MEMBER_ID)
    code = producer.send_offset(group, topic, 1, member=member.id, generation=member.generation)
    probe.expect_error("the member", code)


@both("end-of-nothing", "KIP-98")
def end_of_nothing(flow: Flow, probe: Probe) -> None:
    """A commit without a transaction gets INVALID_TXN_STATE."""
    producer = _producer(probe, flow)
    probe.expect_error("EndTxn, commit", producer.end(True).error_code, ErrorCode.INVALID_TXN_STATE)


@both("wrong-producer-id", "KIP-98")
def wrong_producer_id(flow: Flow, probe: Probe) -> None:
    """A producer id that does not belong to the transactional id gets INVALID_PRODUCER_ID_MAPPING."""
    producer = _producer(probe, flow)
    producer.id += 1_000_000
    probe.expect_error("EndTxn", producer.end(True).error_code, ErrorCode.INVALID_PRODUCER_ID_MAPPING)


@both("timed-out", "KIP-98")
def timed_out(flow: Flow, probe: Probe) -> None:
    """The coordinator aborts a transaction that exceeds its timeout, and the transaction can no longer be committed."""
    topic = probe.topic()
    producer = Producer(probe, probe.transactional_id(), flow).begin(timeout_ms=1000)
    producer.write(topic, b"lost")
    _await_end(probe, topic)
    probe.expect("the values", _values(probe, topic, COMMITTED), [])
    refused = [ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED]
    if not flow.adds:
        # The previous epoch may belong to an EndTxn whose response was lost, but that was another transaction.
        refused.append(ErrorCode.INVALID_TXN_STATE)
    probe.expect_error("its EndTxn", producer.end(True).error_code, *refused)


@room.check("coordinator", "KIP-98", *INIT)
def coordinator(probe: Probe) -> None:
    """FindCoordinator with key type 1 returns the broker that coordinates a transactional id."""
    node = probe.coordinator(probe.name(), TRANSACTION)
    probe.require(node in probe.target.nodes, "one of the brokers", f"{node} of {sorted(probe.target.nodes)}")


@room.check("init", "KIP-98", *INIT)
def init(probe: Probe) -> None:
    """A transactional id keeps its producer id, and every InitProducerId raises its epoch by one."""
    first = _producer(probe)
    probe.expect("the first epoch", first.epoch, 0)
    second = _producer(probe, CLASSIC, first.transactional_id)
    probe.expect("id and epoch then", (second.id == first.id, second.epoch), (True, 1))


@room.check("init-own-epoch", "KIP-360", *INIT, "InitProducerId 3+")
def init_own_epoch(probe: Probe) -> None:
    """A producer that passes its id and epoch gets a higher epoch; an old epoch gets PRODUCER_FENCED."""
    producer = _producer(probe)
    before = producer.id, producer.epoch
    answer = producer.init(producer_id=before[0], producer_epoch=before[1])
    probe.expect_error("InitProducerId with its own epoch", answer.error_code)
    probe.expect("the epoch", answer.producer_epoch, before[1] + 1)
    _producer(probe, CLASSIC, producer.transactional_id)
    answer = producer.init(producer_id=before[0], producer_epoch=before[1])
    version = probe.version(ApiKey.INIT_PRODUCER_ID)
    code = ErrorCode.PRODUCER_FENCED if version >= 4 else ErrorCode.INVALID_PRODUCER_EPOCH
    probe.expect_error("InitProducerId with an old epoch", answer.error_code, code)


@room.check("init-timeout", "KIP-98", *INIT)
def init_timeout(probe: Probe) -> None:
    """A transaction timeout of 0, or above transaction.max.timeout.ms, gets INVALID_TRANSACTION_TIMEOUT."""
    producer = Producer(probe, probe.name(), CLASSIC)
    for timeout_ms in (0, 2**31 - 1):
        code = producer.init(timeout_ms=timeout_ms).error_code
        probe.expect_error(f"{timeout_ms} ms", code, ErrorCode.INVALID_TRANSACTION_TIMEOUT)


@room.check("init-empty-id", "KIP-98", *INIT)
def init_empty_id(probe: Probe) -> None:
    """An empty transactional id gets INVALID_REQUEST: a missing id must be null."""
    answer = probe.ask(ApiKey.INIT_PRODUCER_ID, transactions.init_producer_id(""))
    probe.expect_error("InitProducerId", answer.error_code, ErrorCode.INVALID_REQUEST)


@room.check("add-unknown-partition", "KIP-98", *CLASSIC.needs)
def add_unknown_partition(probe: Probe) -> None:
    """A partition that does not exist gets UNKNOWN_TOPIC_OR_PARTITION, and the others OPERATION_NOT_ATTEMPTED."""
    topic, producer = probe.topic(), _producer(probe)
    codes = producer.add(topic, 0, 9)
    probe.expect_error("the unknown partition", codes[9], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    probe.expect_error("the other", codes[0], ErrorCode.OPERATION_NOT_ATTEMPTED)


@room.check("add-with-wrong-epoch", "KIP-98", *CLASSIC.needs)
def add_with_wrong_epoch(probe: Probe) -> None:
    """AddPartitionsToTxn with any epoch but the latest gets PRODUCER_FENCED, or INVALID_PRODUCER_EPOCH before v2."""
    topic, producer = probe.topic(), _producer(probe)
    _producer(probe, CLASSIC, producer.transactional_id)
    codes = ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH
    probe.expect_error("AddPartitionsToTxn", producer.add(topic, 0)[0], *codes)


@room.check("add-with-unknown-id", "KIP-98", *CLASSIC.needs)
def add_with_unknown_id(probe: Probe) -> None:
    """A transactional id that was never initialised gets INVALID_PRODUCER_ID_MAPPING."""
    topic, producer = probe.topic(), Producer(probe, probe.name(), CLASSIC)
    producer.id, producer.epoch = 1, 0
    probe.expect_error("AddPartitionsToTxn", producer.add(topic, 0)[0], ErrorCode.INVALID_PRODUCER_ID_MAPPING)


@room.check("write-without-adding", "KIP-890", *CLASSIC.needs)
def write_without_adding(probe: Probe) -> None:
    """In the classic flow, a write to a partition that was not added is refused, so that no transaction hangs."""
    topic, producer = probe.topic(), _producer(probe)
    code = producer.send(topic, b"value").error_code
    probe.expect_error("Produce", code, ErrorCode.INVALID_TXN_STATE, ErrorCode.TRANSACTION_ABORTABLE)
    probe.expect("the end of the log", probe.end_offset(topic), 0)


@room.check("commit-twice", "KIP-98", *CLASSIC.needs)
def commit_twice(probe: Probe) -> None:
    """A repeated commit gets the same response as the first; an abort after a commit gets INVALID_TXN_STATE."""
    topic, producer = probe.topic(), _producer(probe)
    producer.write(topic, b"value")
    producer.commit()
    producer.commit()
    probe.expect_error("EndTxn, abort", producer.end(False).error_code, ErrorCode.INVALID_TXN_STATE)


@room.check("epoch-of-each-transaction", "KIP-890", *IMPLICIT.needs, features=IMPLICIT.features)
def epoch_of_each_transaction(probe: Probe) -> None:
    """EndTxn v5 raises the producer's epoch for the next transaction, and late writes with the old one are refused."""
    topic, producer = probe.topic(), _producer(probe, IMPLICIT)
    before = producer.epoch
    producer.write(topic, b"value")
    producer.commit()
    probe.expect("the epoch in the response", producer.epoch, before + 1)
    _await_end(probe, topic)
    code = producer.send(topic, b"late", producer_epoch=before, base_sequence=1).error_code
    fenced = ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED
    probe.expect_error("a write with the old epoch", code, *fenced)


@room.check("implicit-end-again", "KIP-890", *IMPLICIT.needs, features=IMPLICIT.features)
def implicit_end_again(probe: Probe) -> None:
    """An EndTxn v5 repeated after a lost response gets the same new epoch."""
    topic, producer = probe.topic(), _producer(probe, IMPLICIT)
    producer.write(topic, b"value")
    epoch = producer.epoch
    first = producer.end(True)
    probe.expect_error("EndTxn", first.error_code)
    _await_end(probe, topic)
    producer.epoch = epoch
    again = producer.end(True)
    probe.expect_error("EndTxn again", again.error_code)
    probe.expect("the epoch", again.producer_epoch, first.producer_epoch)


@room.check("transactional-batch-needs-id", "KIP-98", *INIT, "Produce", "ListOffsets")
def transactional_batch_needs_id(probe: Probe) -> None:
    """A transactional batch in a request without a transactional id is refused."""
    topic = probe.topic()
    producer = _producer(probe)
    records = batch(
        b"value", producer_id=producer.id, producer_epoch=producer.epoch, base_sequence=0, transactional=True
    )
    code = probe.produce(topic, records).error_code
    probe.require(code != ErrorCode.NONE, "Produce to be refused", ErrorCode(code).name)
    probe.expect("the end of the log", probe.end_offset(topic), 0)


def _described(probe: Probe, transactional_id: str) -> Any:
    request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
    answer = probe.ask_coordinator(transactional_id, ApiKey.DESCRIBE_TRANSACTIONS, request, key_type=TRANSACTION)
    return answer.transaction_states[0]


@room.check("described", "KIP-664", *CLASSIC.needs, "DescribeTransactions")
def described(probe: Probe) -> None:
    """DescribeTransactions shows the state and the partitions of a transaction."""
    topic, producer = probe.topic(), _producer(probe)
    probe.expect("the state at first", _described(probe, producer.transactional_id).transaction_state, "Empty")
    producer.write(topic, b"value")
    found = _described(probe, producer.transactional_id)
    probe.expect("the state then", found.transaction_state, "Ongoing")
    probe.expect("the partitions", [(each.topic, each.partitions) for each in found.topics], [(topic, [0])])
    producer.commit()
    probe.until(
        "the state to be CompleteCommit",
        lambda: _described(probe, producer.transactional_id).transaction_state,
        lambda state: state == "CompleteCommit",
    )
    probe.require(True, "the state in the end to be CompleteCommit", "it is")


@room.check("described-unknown", "KIP-664", "DescribeTransactions", "FindCoordinator 1+")
def described_unknown(probe: Probe) -> None:
    """A transactional id that does not exist gets TRANSACTIONAL_ID_NOT_FOUND."""
    code = _described(probe, probe.name()).error_code
    probe.expect_error("DescribeTransactions", code, ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)


@room.check("listed", "KIP-664", *CLASSIC.needs, "ListTransactions")
def listed(probe: Probe) -> None:
    """ListTransactions filters by state and by producer id, and returns the states that it does not know."""
    topic, producer = probe.topic(), _producer(probe)
    producer.write(topic, b"value")
    node = probe.coordinator(producer.transactional_id, TRANSACTION)

    def ask(states: list[str], ids: list[int]) -> Any:
        request = ListTransactionsRequest(state_filters=states, producer_id_filters=ids)
        return probe.ask(ApiKey.LIST_TRANSACTIONS, request, node=node)

    for states, there in ((["Ongoing"], True), (["Empty"], False), ([], True)):
        found = [each.transactional_id for each in ask(states, [producer.id]).transaction_states]
        probe.expect(f"those of this producer in {states or 'any state'}", found, [producer.transactional_id] * there)
    probe.expect("unknown states", ask(["Ongoing", "Bogus"], []).unknown_state_filters, ["Bogus"])


@room.check("start-described", "KIP-664", *CLASSIC.needs, "DescribeProducers")
def start_described(probe: Probe) -> None:
    """DescribeProducers shows the start offset of a producer's open transaction, and -1 after it has ended."""
    topic, producer = probe.topic(), _producer(probe)
    probe.append(topic, b"before")
    producer.write(topic, b"value")

    def start() -> int:
        request = DescribeProducersRequest(topics=[TopicRequest(name=topic, partition_indexes=[0])])
        answer = probe.ask(ApiKey.DESCRIBE_PRODUCERS, request, node=probe.leader(topic))
        found = probe.only(answer.topics, "partitions").active_producers
        return next((each.current_txn_start_offset for each in found if each.producer_id == producer.id), -2)

    probe.expect("the start", start(), 1)
    producer.commit()
    _await_end(probe, topic)
    probe.expect("the start when it has ended", start(), -1)
