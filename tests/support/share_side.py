"""One of two brokers to which a story of share groups is played: members have a name and a connection each."""

from barnabas.broker.share.key import SharePartitionKey
from barnabas.client.requests import shares, transactions
from barnabas.client.requests.admin import describe_configs, incremental_alter_configs
from barnabas.client.requests.data import produce
from barnabas.client.requests.records import batch, read_batches
from barnabas.client.wire import Wire
from barnabas.protocol.api import ApiKey
from barnabas.protocol.frames import request_frame
from barnabas.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.share_fetch import PartitionData
from tests.support.polling import pause
from tests.support.side_by_side import Side

GROUP = 32  # as resources of settings are numbered
SET = 0

# The others have version 0 alone.
VERSIONS = {ApiKey.WRITE_SHARE_GROUP_STATE: 1, ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: 1}


class ShareSide(Side):
    """`group` is that of the story that is being played."""

    def __init__(self, port):
        super().__init__(port)
        self.group = ""
        self._wires = {}
        self.members = {}

    def begin(self, group):
        for wire in self._wires.values():
            wire.close()
        self._wires.clear()
        self.group = group

    def place(self, topic="t", partition=0):
        """As requests name a partition."""
        self.create_topic(topic, partitions=2)
        return self.name(topic, by_id=True), partition

    def state(self, key, message):
        return self.ask(key, message, VERSIONS.get(key, 0))

    def wait_for_coordinator(self):
        """Nothing tells a client that a coordinator has created and loaded its topic; polling is the only way."""
        key = SharePartitionKey("g", *self.place())
        while self.find_coordinator(key.coordinator_key).error_code:
            pause()
        summary = shares.read_share_group_state_summary("g", self.place())
        while self.state(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, summary).results[0].partitions[0].error_code:
            pause()

    def find_coordinator(self, *keys, version=6):
        message = FindCoordinatorRequest(key_type=2, coordinator_keys=list(keys))
        return self.ask(ApiKey.FIND_COORDINATOR, message, version).coordinators[0]

    # --- the state of share partitions ---

    def initialize(self, place, **fields):
        return self.state(
            ApiKey.INITIALIZE_SHARE_GROUP_STATE, shares.initialize_share_group_state(self.group, place, **fields)
        )

    def write(self, place, *batches, **fields):
        message = shares.write_share_group_state(self.group, place, *batches, **fields)
        return self.state(ApiKey.WRITE_SHARE_GROUP_STATE, message)

    def read(self, place, leader_epoch=0):
        return self.state(ApiKey.READ_SHARE_GROUP_STATE, shares.read_share_group_state(self.group, place, leader_epoch))

    def summary(self, *places):
        return self.state(
            ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, shares.read_share_group_state_summary(self.group, *places)
        )

    def delete(self, *places):
        return self.state(ApiKey.DELETE_SHARE_GROUP_STATE, shares.delete_share_group_state(self.group, *places))

    # --- records ---

    def _of(self, who, key, message, version):
        """Each member has a connection of its own."""
        if who not in self._wires:
            self._wires[who] = Wire("127.0.0.1", self.port)
        self._wires[who].send(request_frame(key, message, version))
        return self._wires[who].answer(key, version)

    def leave(self, who):
        """Close a member's connection."""
        self._wires.pop(who).close()

    def fetch(self, who, epoch, *places, version=2, **fields):
        message = shares.share_fetch(self.group, who, epoch, places, **fields)
        return self._of(who, ApiKey.SHARE_FETCH, message, version)

    def fetch_until(self, who, epoch, *places, **fields):
        """Fetch until there is something, and give that and the next epoch."""
        while True:
            answer = self.fetch(who, epoch, *places, max_wait_ms=500, min_bytes=1, **fields)
            epoch += 1
            if answer.responses or answer.error_code:
                return answer, epoch

    def acknowledge(self, who, epoch, acknowledgements=None, version=2, **fields):
        message = shares.share_acknowledge(self.group, who, epoch, acknowledgements, **fields)
        return self._of(who, ApiKey.SHARE_ACKNOWLEDGE, message, version)

    def produce(self, place, *batches, topic="t", timestamp=None):
        """Batches of so many records each, of now unless a time is given."""
        for count in batches:
            records = batch(*(b"%d" % number for number in range(count)), timestamp=timestamp)
            answer = self.ask(ApiKey.PRODUCE, produce((topic, place[1], records)), 9)
            assert not answer.responses[0].partition_responses[0].error_code

    def transaction(self, topic, *batches, commit):
        """A transaction with batches of so many records; with None, it stays open."""
        name = f"{self.group}-{topic}"
        self.ask(ApiKey.FIND_COORDINATOR, FindCoordinatorRequest(key=name, key_type=1), 3)  # creates its topic
        producer = self._init_producer_id(name)
        who = producer.producer_id, producer.producer_epoch
        added = transactions.add_partitions_to_txn(3, name, *who, (topic, 0))
        while (
            self.ask(ApiKey.ADD_PARTITIONS_TO_TXN, added, 3)
            .results_by_topic_v3_and_below[0]
            .results_by_partition[0]
            .partition_error_code
        ):
            pause()
        sequence = 0
        for count in batches:
            records = batch(
                *(b"%d" % number for number in range(count)),
                producer_id=who[0],
                producer_epoch=who[1],
                base_sequence=sequence,
                transactional=True,
            )
            sequence += count
            self.ask(ApiKey.PRODUCE, produce((topic, 0, records), transactional_id=name), 9)
        if commit is not None:
            assert not self.ask(ApiKey.END_TXN, transactions.end_txn(name, *who, commit=commit), 3).error_code
            self._init_producer_id(name)  # it is refused until the markers are written

    def _init_producer_id(self, name):
        while (answer := self.ask(ApiKey.INIT_PRODUCER_ID, transactions.init_producer_id(name), 4)).error_code:
            pause()
        return answer

    def set_for_group(self, name, value):
        message = incremental_alter_configs((GROUP, self.group, [(SET, name, value)]))
        assert not self.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, message, 1).responses[0].error_code
        while True:
            described = self.ask(ApiKey.DESCRIBE_CONFIGS, describe_configs((GROUP, self.group, [name])), 4)
            if [each.value for each in described.results[0].configs] == [value]:
                return
            pause()

    def delete_records(self, topic, offset):
        topics = [DeleteRecordsTopic(name=topic, partitions=[DeleteRecordsPartition(partition_index=0, offset=offset)])]
        self.ask(ApiKey.DELETE_RECORDS, DeleteRecordsRequest(topics=topics, timeout_ms=10_000), 2)

    # --- comparing ---

    def comparable(self, value):
        found = super().comparable(value)
        if isinstance(value, PartitionData):
            del found["acknowledge_error_message"]
            found["records"] = [(header.base_offset, header.next_offset) for header, _ in read_batches(value.records)]
            # Apache Kafka names each offset alone where a batch was acknowledged in parts.
            found["acquired_records"] = [
                (offset, each.delivery_count)
                for each in value.acquired_records
                for offset in range(each.first_offset, each.last_offset + 1)
            ]
        return found
