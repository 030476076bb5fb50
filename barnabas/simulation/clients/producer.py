"""Producers: plain, idempotent, transactional. They retry until a batch is delivered or its time is over."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from barnabas.client.requests import data, lookup, transactions
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnResponse
from barnabas.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnResponse
from barnabas.protocol.messages.end_txn import EndTxnResponse
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from barnabas.protocol.messages.produce import ProduceResponse
from barnabas.protocol.messages.txn_offset_commit import TxnOffsetCommitResponse
from barnabas.protocol.records.builder import NewRecord, build_batch
from barnabas.simulation.clients.client import MOVED, REQUEST_TIMEOUT_MS, Client, GivenUp, Lost, Refused
from barnabas.simulation.history import Commit, History, Outcome, Send, Transaction

if TYPE_CHECKING:
    from barnabas.simulation.world import World

DELIVERY_TIMEOUT: Final = 25.0

# Whoever is not asked for a topic by id might write to a new topic of the same name.
_BY_ID: Final = 13

# It may have been appended: a leader that is deposed, or whose disk fails, refuses what it has already written.
_PERHAPS: Final = MOVED | {
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.NETWORK_EXCEPTION,
}
# Nothing was appended, and it is worth another try.
_NOT_APPENDED: Final = frozenset({ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.CONCURRENT_TRANSACTIONS})
_FENCED: Final = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED})


@dataclass(slots=True)
class _Batch:
    send: Send
    data: bytes
    deadline: float
    may_be_there: bool = False  # one try was not answered, or in a way that leaves it open


class Producer(Client):
    """Sends batches to random partitions of its topics, some at a time, until it is stopped."""

    def __init__(
        self,
        world: World,
        name: str,
        history: History,
        topics: Sequence[str],
        *,
        acks: int = -1,
        idempotent: bool = False,
        at_once: int = 1,
        pause: tuple[float, float] = (0.1, 1.0),
        version: int = _BY_ID,
        retries: bool = True,
        request_timeout_ms: int = REQUEST_TIMEOUT_MS,
        patience: float = DELIVERY_TIMEOUT,
    ) -> None:
        """It waits so long for one answer, and tries a batch again for so many seconds."""
        super().__init__(world, name, history)
        self._request_timeout_ms = request_timeout_ms
        self._patience = patience
        self._names = list(topics)
        self._acks = acks
        self._idempotent = idempotent
        self._at_once = at_once
        self._pause = pause
        self._version = version
        self._retries = retries
        self.producer_id = -1
        self.producer_epoch = -1
        self._incarnation = 0
        self._sequences: dict[tuple[bytes, int], int] = {}
        self._number = 0

    async def run(self) -> None:
        while not self.stopping:
            try:
                if self._idempotent and self.producer_id < 0:
                    await self._init(None)
                await self._send_some()
            except GivenUp as error:
                self.note(f"gives up: {error}")
            await self.sleep(*self._pause)

    async def _send_some(self) -> None:
        topic = await self.topic(self.chance.choice(self._names), self.loop.time() + DELIVERY_TIMEOUT)
        index = self.chance.choice(sorted(topic.partitions))
        batches = [self.batch(topic.name, index) for _ in range(self.chance.randint(1, self._at_once))]
        await self.deliver(batches)

    # --- batches ---

    def batch(self, topic: str, index: int, transaction: Transaction | None = None) -> _Batch:
        """The next batch of new values for a partition."""
        found = self.topics[topic]
        count = self.chance.randint(1, 3)
        values = tuple(f"{self.name}/{self._number + each}" for each in range(count))
        self._number += count
        place = (found.topic_id, index)
        sequence = self._sequences.get(place, 0)
        if self.producer_id >= 0:
            self._sequences[place] = sequence + count
        now_ms = self.clock.now_ms()
        batch = build_batch(
            [NewRecord(now_ms, value.split("/")[0].encode(), value.encode()) for value in values],
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            base_sequence=sequence if self.producer_id >= 0 else -1,
            transactional=transaction is not None,
        )
        send = Send(
            self.name,
            found.key(index),
            values,
            self.loop.time(),
            self._acks,
            self.producer_id >= 0,
            transaction,
            epoch=self.producer_epoch,
            incarnation=self._incarnation,
        )
        self.history.sends.append(send)
        return _Batch(send, bytes(batch), self.loop.time() + self._patience)

    async def deliver(self, batches: Sequence[_Batch], transactional_id: str | None = None) -> Refused | None:
        """Deliver batches to one partition, all under way at once. Those that fail are sent again, in their order.

        Returns why the producer cannot go on, if it cannot.
        """
        left = list(batches)
        trouble: Refused | None = None
        while left:
            outcomes = await asyncio.gather(*(self._try(each, transactional_id) for each in left))
            again = []
            for each, outcome in zip(left, outcomes, strict=True):
                if outcome is None:
                    continue
                if isinstance(outcome, Refused) and outcome.code not in _NOT_APPENDED | _PERHAPS:
                    trouble = outcome
                again.append(each)
            left = again
            if not left:
                return None
            # A batch behind one that was not taken is out of order: what is to be sent again decides.
            out_of_order = trouble is not None and trouble.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
            if out_of_order and any(outcome is None or not _is_out_of_order(outcome) for outcome in outcomes[:1]):
                trouble = None
            late = self.loop.time() > left[0].deadline or self.stopping
            if trouble is not None or late or not self._retries:
                self._fail(left, trouble)
                return trouble or Refused(ErrorCode.REQUEST_TIMED_OUT)
            await self.sleep(0.05, 0.3)
            await self.refresh([left[0].send.key[0].split("#")[0]])
        return None

    def _fail(self, batches: Sequence[_Batch], trouble: Refused | None) -> None:
        for each in batches:
            each.send.ended = self.loop.time()
            each.send.outcome = Outcome.UNKNOWN if each.may_be_there else Outcome.FAILED
            self.note(f"{each.send.values} to {each.send.key}: {each.send.outcome.value} ({trouble})")
        if self.producer_id >= 0:
            self._begin_anew()

    def _begin_anew(self) -> None:
        """After a batch whose fate is open, its sequence numbers cannot be continued."""
        self.producer_id = self.producer_epoch = -1
        self._sequences = {}

    async def _try(self, batch: _Batch, transactional_id: str | None) -> Refused | Lost | None:
        """Send a batch once. None if it is there."""
        send = batch.send
        name = send.key[0].split("#")[0]
        topic = self.topics.get(name)
        if topic is None or topic.key(send.key[1]) != send.key:
            return Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        led = topic.partitions.get(send.key[1])
        if led is None or led.leader < 0:
            return Refused(ErrorCode.LEADER_NOT_AVAILABLE)
        request = data.produce(
            (topic.topic_id if self._version >= _BY_ID else name, send.key[1], batch.data),
            acks=self._acks,
            timeout_ms=4_000,
            transactional_id=transactional_id,
        )
        try:
            found = await self.ask(led.leader, request, self._version, ProduceResponse, self._request_timeout_ms)
        except Lost as lost:
            batch.may_be_there = True
            return lost
        answer = found.responses[0].partition_responses[0]
        code = ErrorCode(answer.error_code)
        if code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
            send.ended = self.loop.time()
            send.outcome = Outcome.OK
            send.offset = answer.base_offset if code == ErrorCode.NONE else -1
            return None
        batch.may_be_there = batch.may_be_there or code in _PERHAPS
        return Refused(code)

    # --- identity ---

    async def _init(
        self, transactional_id: str | None, timeout_ms: int = 10_000, patience: float = DELIVERY_TIMEOUT
    ) -> None:
        """Get a producer id. With a transactional id this ends what a former producer of that id left open."""
        deadline = self.loop.time() + patience
        request = transactions.init_producer_id(transactional_id, timeout_ms=timeout_ms)
        if transactional_id is not None:
            found = await self.ask_coordinator(
                transactional_id,
                lookup.TRANSACTION,
                request,
                4,
                InitProducerIdResponse,
                lambda answer: answer.error_code,
                deadline,
                retried=(ErrorCode.CONCURRENT_TRANSACTIONS,),
            )
        else:
            found = await self._ask_anybody(request, deadline)
        self.producer_id, self.producer_epoch = found.producer_id, found.producer_epoch
        self._sequences = {}
        self._incarnation += 1

    async def _ask_anybody(self, request: InitProducerIdRequest, deadline: float) -> InitProducerIdResponse:
        while True:
            try:
                found = await self.ask(self.any_broker(), request, 4, InitProducerIdResponse)
                if not found.error_code:
                    return found
            except Lost:
                pass
            self.raise_if_late(deadline, "no producer id")
            await self.sleep(0.1, 0.5)


class TransactionalProducer(Producer):
    """Writes to several partitions in one transaction, and ends most of them with a commit."""

    def __init__(
        self,
        world: World,
        name: str,
        history: History,
        topics: Sequence[str],
        *,
        transactional_id: str | None = None,
        implicit: bool = False,
        pause: tuple[float, float] = (0.1, 1.0),
        group: str | None = None,
        at_once: int = 2,
        request_timeout_ms: int = REQUEST_TIMEOUT_MS,
        patience: float = DELIVERY_TIMEOUT,
    ) -> None:
        """With `implicit`, partitions are added by writing to them (KIP-890); otherwise by AddPartitionsToTxn."""
        super().__init__(
            world,
            name,
            history,
            topics,
            idempotent=True,
            pause=pause,
            version=_BY_ID if implicit else 11,
            at_once=at_once,
            request_timeout_ms=request_timeout_ms,
            patience=patience,
        )
        self.transactional_id = transactional_id or name
        self._implicit = implicit
        self._group = group
        self._committed = 0  # offsets that it commits for its group
        self._transactions = 0

    async def run(self) -> None:
        while not self.stopping:
            try:
                if self.producer_id < 0:
                    await self._init(self.transactional_id)
                await self._transact()
            except (GivenUp, Lost) as error:
                self.note(f"gives up: {error}")
                self._begin_anew()
            except Refused as error:
                self.note(f"is refused: {error}")
                self._begin_anew()
            await self.sleep(*self._pause)

    async def succeed(self, transactional_id: str) -> None:
        """Be the next producer with this id, as after a restart.

        A coordinator that has sent a marker to a broker that then lost power waits for `request.timeout.ms`, 30 s.
        """
        await self._init(transactional_id, patience=2 * DELIVERY_TIMEOUT)

    async def _transact(self) -> None:
        self._transactions += 1
        transaction = Transaction(self.name, self._transactions, self.loop.time())
        self.history.transactions.append(transaction)
        try:
            await self._write_and_end(transaction)
        except BaseException:
            transaction.ended = self.loop.time()
            raise

    async def _write_and_end(self, transaction: Transaction) -> None:
        places = []
        for _ in range(self.chance.randint(1, 3)):
            topic = await self.topic(self.chance.choice(self._names), self.loop.time() + DELIVERY_TIMEOUT)
            places.append((topic.name, self.chance.choice(sorted(topic.partitions))))
        places = list(dict.fromkeys(places))
        transaction.wants = "abort" if self.chance.random() < 0.25 else "commit"
        trouble: Refused | None = None
        wrote = False
        try:
            if not self._implicit:
                await self._add_partitions(places)
            for name, index in places:
                batches = [self.batch(name, index, transaction) for _ in range(self.chance.randint(1, self._at_once))]
                wrote = True
                identity = self.producer_id, self.producer_epoch
                trouble = await self.deliver(batches, self.transactional_id)
                if trouble is not None:
                    self.producer_id, self.producer_epoch = identity  # to end the transaction with
                    break
                await self.sleep(0, 0.2)
            if trouble is None and self._group is not None:
                await self._add_offsets(transaction)
        except Refused as error:
            trouble = error
        if trouble is not None and trouble.code in _FENCED:
            raise trouble  # somebody else has this id now, or the coordinator has aborted the transaction
        if trouble is not None:
            transaction.wants = "abort"
        if self._implicit and not wrote:
            return
        await self._end(transaction)
        if trouble is not None:
            self._begin_anew()

    async def _end(self, transaction: Transaction) -> None:
        commit = transaction.wants == "commit"
        request = transactions.end_txn(self.transactional_id, self.producer_id, self.producer_epoch, commit=commit)
        transaction.outcome = "unknown" if commit else "aborted"
        try:
            found = await self.ask_coordinator(
                self.transactional_id,
                lookup.TRANSACTION,
                request,
                5 if self._implicit else 3,
                EndTxnResponse,
                lambda answer: answer.error_code,
                self.loop.time() + DELIVERY_TIMEOUT,
                retried=(ErrorCode.CONCURRENT_TRANSACTIONS,),
            )
        except Refused as error:
            # It was not ours to end any more; or this is the second time that it is asked for.
            self.note(f"{transaction.name} does not end: {error}")
            raise
        transaction.outcome = "committed" if commit else "aborted"
        transaction.ended = self.loop.time()
        if self._implicit and found.producer_id >= 0:
            if (found.producer_id, found.producer_epoch) != (self.producer_id, self.producer_epoch):
                self._sequences = {}
                self._incarnation += 1
            self.producer_id, self.producer_epoch = found.producer_id, found.producer_epoch

    async def _add_partitions(self, places: Sequence[tuple[str, int]]) -> None:
        def error_of(answer: AddPartitionsToTxnResponse) -> int:
            codes = [
                each.partition_error_code
                for topic in answer.results_by_topic_v3_and_below
                for each in topic.results_by_partition
            ]
            return next((code for code in codes if code and code != ErrorCode.OPERATION_NOT_ATTEMPTED), max(codes))

        await self.ask_coordinator(
            self.transactional_id,
            lookup.TRANSACTION,
            transactions.add_partitions_to_txn(
                3, self.transactional_id, self.producer_id, self.producer_epoch, *sorted(places)
            ),
            3,
            AddPartitionsToTxnResponse,
            error_of,
            self.loop.time() + DELIVERY_TIMEOUT,
            retried=(ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        )

    async def _add_offsets(self, transaction: Transaction) -> None:
        """Commit an offset of a group in the transaction; it rises with every one."""
        group = self._group or ""
        topic = await self.topic(self._names[0], self.loop.time() + DELIVERY_TIMEOUT)
        deadline = self.loop.time() + DELIVERY_TIMEOUT
        if not self._implicit:
            await self.ask_coordinator(
                self.transactional_id,
                lookup.TRANSACTION,
                transactions.add_offsets_to_txn(self.transactional_id, self.producer_id, self.producer_epoch, group),
                3,
                AddOffsetsToTxnResponse,
                lambda answer: answer.error_code,
                deadline,
                retried=(ErrorCode.CONCURRENT_TRANSACTIONS,),
            )
        self._committed += 1
        commit = Commit(group, topic.key(0), self._committed, self.name, self.loop.time(), transaction=transaction)
        self.history.commits.append(commit)
        await self.ask_coordinator(
            group,
            lookup.GROUP,
            transactions.txn_offset_commit(
                self.transactional_id, group, self.producer_id, self.producer_epoch, (topic.name, 0, self._committed)
            ),
            5 if self._implicit else 3,
            TxnOffsetCommitResponse,
            lambda answer: answer.topics[0].partitions[0].error_code,
            deadline,
            retried=(ErrorCode.CONCURRENT_TRANSACTIONS,),
        )


def _is_out_of_order(outcome: object) -> bool:
    return isinstance(outcome, Refused) and outcome.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
