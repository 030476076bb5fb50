import pytest

from barnabas.broker.coordinator.at_offset import AtOffset
from barnabas.broker.share.key import SharePartitionKey, is_coordinator_key
from barnabas.broker.share.records import Snapshot, Update, read_record
from barnabas.broker.share.shard import Refusal, ShareShard, Write
from barnabas.broker.share.state_batches import StateBatch
from barnabas.protocol.errors import ErrorCode

TOPIC = bytes(range(16))
KEY = SharePartitionKey("g", TOPIC, 0)
ACKNOWLEDGED = 2


class World:
    """A shard, and the log that it writes to."""

    def __init__(self, updates_per_snapshot=2):
        self.now_ms = 1000
        self.partitions = 1
        self.updates_per_snapshot = updates_per_snapshot
        self.log = []
        self.shard = self.new_shard()

    def new_shard(self):
        return ShareShard(lambda: self.updates_per_snapshot, lambda topic_id: self.partitions, lambda: self.now_ms)

    def append(self, record):
        assert not isinstance(record, Refusal)
        read = read_record(record)
        assert read == record.read
        self.shard.replay(AtOffset(len(self.log), read))
        self.log.append(read)
        return read[1]

    def initialize(self, key=KEY, state_epoch=0, start_offset=0):
        return self.append(self.shard.initialize(key, state_epoch, start_offset))

    def write(self, *batches, start_offset=-1, leader_epoch=0, state_epoch=0, completed=0):
        return self.append(self.shard.write(KEY, Write(state_epoch, leader_epoch, start_offset, completed, batches)))

    def loaded(self):
        """Another shard that reads the log."""
        shard = self.new_shard()
        for offset, read in enumerate(self.log):
            shard.replay(AtOffset(offset, read))
        return shard


@pytest.fixture
def world():
    return World()


def test_a_snapshot_follows_on_so_many_updates(world):
    world.initialize()
    kinds = [type(world.write(StateBatch(offset, offset, ACKNOWLEDGED, 1))) for offset in range(6)]
    assert kinds == [Update, Update, Snapshot, Update, Update, Snapshot]
    assert world.shard.snapshot(KEY).batches == (StateBatch(0, 5, ACKNOWLEDGED, 1),)
    assert world.shard.snapshot(KEY).snapshot_epoch == 2


def test_another_shard_reads_the_same(world):
    world.initialize(state_epoch=3, start_offset=5)
    for offset in range(5, 12):
        world.write(StateBatch(offset, offset, ACKNOWLEDGED, 1), start_offset=offset - 2, state_epoch=3)
    assert world.loaded().snapshot(KEY) == world.shard.snapshot(KEY)


def test_a_new_leader_fences_the_one_before(world):
    world.initialize()
    snapshot, record = world.shard.read(KEY, 4)
    assert snapshot.leader_epoch == 0
    world.append(record)
    assert world.shard.read(KEY, 4) == (world.shard.snapshot(KEY), None)
    assert world.shard.read(KEY, 3) == Refusal(ErrorCode.FENCED_LEADER_EPOCH)
    assert world.shard.write(KEY, Write(0, 3, -1, 0, ())) == Refusal(ErrorCode.FENCED_LEADER_EPOCH)
    world.initialize(state_epoch=1)
    assert world.loaded().read(KEY, 3) == Refusal(ErrorCode.FENCED_LEADER_EPOCH)


def test_a_new_state_fences_who_knows_the_one_before(world):
    world.initialize(state_epoch=2)
    assert world.shard.write(KEY, Write(1, 0, -1, 0, ())) == Refusal(ErrorCode.FENCED_STATE_EPOCH)
    assert world.shard.initialize(KEY, 1, 0) == Refusal(ErrorCode.FENCED_STATE_EPOCH)


def test_topics_that_are_gone(world):
    world.initialize()
    world.partitions = 0
    assert world.shard.read(KEY, 0) == Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    for record in world.shard.forget_topics({TOPIC}):
        world.append(record)
    assert not world.shard.keys
    assert not world.loaded().keys


def test_records_before_the_oldest_snapshot_are_redundant(world):
    other = SharePartitionKey("g", TOPIC, 1)
    world.partitions = 2
    world.initialize()
    world.initialize(other)
    for offset in range(3):
        world.write(StateBatch(offset, offset, ACKNOWLEDGED, 1))
    assert world.shard.first_needed_offset(len(world.log)) == 1
    world.append(world.shard.delete(other))
    assert world.shard.first_needed_offset(len(world.log)) == 4
    assert world.loaded().snapshot(KEY) == world.shard.snapshot(KEY)


def test_what_is_cold_is_written_again(world):
    world.initialize()
    assert world.shard.cold_snapshots(500) == []
    world.now_ms += 500
    (record,) = world.shard.cold_snapshots(500)
    snapshot = world.append(record)
    assert (snapshot.snapshot_epoch, snapshot.create_timestamp, snapshot.write_timestamp) == (1, 1000, 1500)
    world.now_ms += 500
    assert world.shard.cold_snapshots(500) == []


def test_where_a_group_begins_may_be_unknown(world):
    assert world.initialize(start_offset=-1).delivery_complete_count == -1
    assert world.shard.snapshot(KEY).start_offset == -1


def test_keys_of_coordinators():
    assert KEY.coordinator_key == "g:AAECAwQFBgcICQoLDA0ODw:0"
    assert is_coordinator_key(KEY.coordinator_key)
    assert is_coordinator_key(SharePartitionKey("a:b", TOPIC, 12).coordinator_key)
    assert not any(
        map(is_coordinator_key, ("", "g", "g:t:0", ":AAECAwQFBgcICQoLDA0ODw:0", "g:AAECAwQFBgcICQoLDA0ODw:"))
    )
