"""One of two brokers to which a story of transactions is played.

Producers' ids become numbers in the order of their appearance, so that a new one can be told from the old one; batches
become what a reader sees of them.
"""

import time

from barnabas.client.requests import data, groups, transactions
from barnabas.client.requests.data import LATEST
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.describe_transactions import DescribeTransactionsRequest
from barnabas.protocol.messages.list_transactions import ListTransactionsRequest
from barnabas.protocol.records.batch import CONTROL_FLAG, TRANSACTIONAL_FLAG, read_header
from barnabas.protocol.records.record import read_records
from barnabas.protocol.schema import Struct
from tests.support.batches import batch
from tests.support.group_side import GroupSide
from tests.support.polling import pause
from tests.support.transaction_versions import NEWEST, VERSIONS

COMMIT, ABORT = True, False
READ_UNCOMMITTED, READ_COMMITTED = 0, 1
# Not the end of anything: ask again.
NOT_YET = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.CONCURRENT_TRANSACTIONS,
)
NEWEST_GROUP_LEVEL = 9
GENEROUS_SECONDS = 90


class TransactionSide(GroupSide):
    """`age` is that of the client that tells the story, `id` its transactional id, `topic` one of two partitions."""

    def __init__(self, port):
        super().__init__(port)
        self.age = 0
        self.id = ""
        self.source = ""
        self.producer_id, self.epoch = -1, -1
        self._sequences = {}
        self._numbers = {}

    def begin(self, name, age):
        super().begin(f"group-{name}", NEWEST_GROUP_LEVEL)
        self.age, self.id, self.source = age, f"id-{name}", name
        self.producer_id, self.epoch = -1, -1
        self._sequences, self._numbers = {}, {}
        self.create_topic(self.source, partitions=2)

    def version(self, key):
        return VERSIONS[key][self.age] if key in VERSIONS else super().version(key)

    @property
    def is_newest(self):
        return self.age == NEWEST

    # --- a producer ---

    def init(self, transactional_id=None, *, timeout_ms=60_000, producer_id=-1, epoch=-1):
        """One request. The id and epoch that it brings are the story's from then on."""
        answer = self.of(
            ApiKey.INIT_PRODUCER_ID,
            transactions.init_producer_id(
                self.id if transactional_id is None else transactional_id, producer_id, epoch, timeout_ms
            ),
        )
        if not answer.error_code:
            self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
        return answer

    def init_idempotent(self, *, producer_id=-1, epoch=-1):
        answer = self.of(ApiKey.INIT_PRODUCER_ID, transactions.init_producer_id(None, producer_id, epoch))
        if not answer.error_code:
            self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
        return answer

    def ready(self, *arguments, **fields):
        """Like init, but repeated until nothing is in the way any more."""
        return self.until(lambda: self.init(*arguments, **fields))

    def until(self, ask):
        """Nothing tells a client that a transaction is over; polling is the only way."""
        deadline = time.monotonic() + GENEROUS_SECONDS
        while (answer := ask()).error_code in NOT_YET and time.monotonic() < deadline:
            pause()
        return answer

    def who(self, **other):
        """The story's producer, with some fields replaced."""
        return {"transactional_id": self.id, "producer_id": self.producer_id, "producer_epoch": self.epoch, **other}

    def add(self, *partitions, topic=None, verify_only=False, **other):
        parts = [(self.source if topic is None else topic, index) for index in partitions]
        version = self.version(ApiKey.ADD_PARTITIONS_TO_TXN)
        message = transactions.add_partitions_to_txn(
            version, *self.who(**other).values(), *parts, verify_only=verify_only
        )
        return self.of(ApiKey.ADD_PARTITIONS_TO_TXN, message)

    def prepare(self, *partitions):
        """Add partitions as this client does: the newest leaves that to the broker."""
        if not self.is_newest:
            self.add(*partitions)

    def produce(self, *values, partition=0, sequence=None, transactional=True, timestamp=None, **other):
        """One batch. Sequences continue by themselves, unless one is given."""
        who = self.who(**other)
        key = who["producer_id"], who["producer_epoch"], partition
        first = self._sequences.get(key, 0) if sequence is None else sequence
        records = batch(
            *values,
            timestamp=timestamp,
            producer_id=who["producer_id"],
            producer_epoch=who["producer_epoch"],
            base_sequence=first,
            transactional=transactional,
        )
        named = {"transactional_id": who["transactional_id"]} if transactional else {}
        answer = self.of(ApiKey.PRODUCE, data.produce((self.source, partition, records), **named))
        if sequence is None and not answer.responses[0].partition_responses[0].error_code:
            self._sequences[key] = first + len(values or (b"",))
        return answer

    def end(self, commit=COMMIT, **other):
        """End the transaction. The newest client continues with the epoch that it gets."""
        answer = self.of(ApiKey.END_TXN, transactions.end_txn(**self.who(**other), commit=commit))
        if self.is_newest and not answer.error_code:
            self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
        return answer

    def whole(self, *values, commit=COMMIT, partition=0):
        """A transaction from its beginning to the last marker."""
        self.prepare(partition)
        self.produce(*values, partition=partition)
        answer = self.end(commit)
        self.settled()
        return answer

    def settled(self, transactional_id=None):
        """Wait until all markers of a transaction that is being ended are written."""
        deadline = time.monotonic() + GENEROUS_SECONDS
        while (
            (state := self.describe_transactions(transactional_id or self.id))
            .transaction_states[0]
            .transaction_state.startswith("Prepare")
        ):
            if time.monotonic() > deadline:
                raise AssertionError(f"not settled: {state}")
            pause()

    # --- offsets ---

    def add_offsets(self, group=None, **other):
        message = transactions.add_offsets_to_txn(**self.who(**other), group=self.group if group is None else group)
        return self.of(ApiKey.ADD_OFFSETS_TO_TXN, message)

    def prepare_offsets(self):
        if not self.is_newest:
            self.add_offsets()

    def commit_offsets(self, *offsets, group=None, member="", generation=-1, metadata="", instance=None, **other):
        """Commit (partition, offset) of the story's topic, or of another as (topic, partition, offset)."""
        who = self.who(**other)
        message = transactions.txn_offset_commit(
            who["transactional_id"],
            self.group if group is None else group,
            who["producer_id"],
            who["producer_epoch"],
            *(offset if len(offset) == 3 else (self.source, *offset) for offset in offsets),
            member=member,
            generation=generation,
            metadata=metadata,
            group_instance_id=instance,
        )
        return self.of(ApiKey.TXN_OFFSET_COMMIT, message)

    def committed(self, require_stable=False, version=8):
        asked = {self.group: [(self.source, [0, 1])]}
        stable = {"require_stable": require_stable} if version >= 7 else {}
        return self.ask(ApiKey.OFFSET_FETCH, groups.offset_fetch(version, asked, **stable), version)

    # --- questions ---

    def describe_transactions(self, *transactional_ids):
        message = DescribeTransactionsRequest(transactional_ids=list(transactional_ids or [self.id]))
        return self.of(ApiKey.DESCRIBE_TRANSACTIONS, message)

    def listed_transactions(self, states=(), producers=(), **fields):
        """Those whose ids start like this story's."""
        message = ListTransactionsRequest(state_filters=list(states), producer_id_filters=list(producers), **fields)
        answer = self.of(ApiKey.LIST_TRANSACTIONS, message)
        answer.transaction_states = [
            each for each in answer.transaction_states if each.transactional_id.startswith(self.id)
        ]
        return answer

    def read(self, isolation_level, offset=0, partition=0, **fields):
        version = self.version(ApiKey.FETCH)
        topic = self.name(self.source, by_id=version >= 13)
        message = data.fetch((topic, partition, offset), isolation_level=isolation_level, **fields)
        return self.of(ApiKey.FETCH, message)

    def both(self, offset=0, partition=0):
        """What readers of either kind get, and where the partition ends for them."""
        for level in (READ_UNCOMMITTED, READ_COMMITTED):
            yield self.read(level, offset, partition)
            yield self.offset_of(LATEST, partition, level)

    def offset_of(self, timestamp, partition=0, isolation_level=READ_COMMITTED):
        message = data.list_offsets((self.source, partition, timestamp), isolation_level=isolation_level)
        return self.of(ApiKey.LIST_OFFSETS, message)

    def write_markers(self, *partitions, topic=None, **fields):
        producer_id = fields.pop("producer_id", self.producer_id)
        producer_epoch = fields.pop("producer_epoch", self.epoch)
        parts = [(topic or self.source, index) for index in partitions]
        message = transactions.write_txn_markers(producer_id, producer_epoch, *parts, **fields)
        return self.of(ApiKey.WRITE_TXN_MARKERS, message)

    # --- comparing ---

    def number(self, producer_id):
        return (
            producer_id if producer_id < 0 else f"producer {self._numbers.setdefault(producer_id, len(self._numbers))}"
        )

    def comparable(self, value):
        if isinstance(value, Struct):
            compared = super().comparable(value)
            for name in compared.keys() & {"producer_id"}:
                compared[name] = self.number(value.producer_id)
            for name in compared.keys() & {"transaction_start_time_ms", "last_timestamp", "timestamp"}:
                compared[name] = "a time" if getattr(value, name) >= 0 else getattr(value, name)
            if "records" in compared:
                compared["records"] = [*self._batches(value.records)]
            return compared
        return super().comparable(value)

    def _batches(self, data):
        """Each batch as its base offset, producer, epoch, sequence, and what it holds."""
        at = 0
        data = memoryview(data or b"")
        while at < len(data):
            header = read_header(data, at)
            size = 12 + header.batch_length
            batch = data[at : at + size]
            records = list(read_records(batch, header))
            held = [bytes(record.key if header.attributes & CONTROL_FLAG else record.value) for record in records]
            is_transactional = bool(header.attributes & TRANSACTIONAL_FLAG)
            producer = self.number(header.producer_id), header.producer_epoch, header.base_sequence
            yield repr((header.base_offset, is_transactional, producer, held))
            at += size
