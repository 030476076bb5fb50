"""What a request asks of a share coordinator, and which records it keeps."""

from barnabas.broker.coordinator.result import CoordinatorResult
from barnabas.broker.internal_topics import SHARE_GROUP_STATE
from barnabas.broker.share.coordinator import _initialize, _not_initialized, _Operation
from barnabas.broker.share.key import SharePartitionKey
from barnabas.broker.share.records import Snapshot, snapshot_record
from barnabas.protocol.errors import ErrorCode
from tests.support.running_broker import partition, running
from tests.support.slow_replicas import SlowReplicas

KEY = SharePartitionKey("g", bytes(range(16)), 0)


def test_an_operation_does_not_keep_a_copy_of_a_long_group_id():
    """A request may name a hundred thousand partitions of a group whose id has 32,767 characters."""
    key = SharePartitionKey("g" * 32_767, bytes(16), 7)
    operation = _Operation(key, None, _initialize, _not_initialized, lambda: None)
    assert operation.key == key.coordinator_key
    assert operation.key not in vars(operation).values()


def _snapshot(epoch):
    return snapshot_record(KEY, Snapshot(epoch, 0, 0, epoch, 0, 0, 0))


async def test_records_are_deleted_when_the_snapshots_that_replace_them_are_committed(tmp_path):
    """A new leader that does not have the new snapshot needs the old one."""
    async with running(tmp_path) as broker:
        coordinator = broker.share_coordinator
        assert await coordinator.ensure_topic() == ErrorCode.NONE
        index, _ = coordinator._runtime.shard_of(KEY.coordinator_key)
        kept_in = partition(broker, SHARE_GROUP_STATE, index)
        coordinator._runtime.carry_out(index, CoordinatorResult([_snapshot(0)]))
        slow = SlowReplicas(kept_in)
        slow.commit(kept_in)
        coordinator._runtime.carry_out(index, CoordinatorResult([_snapshot(1)]))
        coordinator.prune()
        assert kept_in.log.log_start_offset == 0
        slow.commit(kept_in)
        assert kept_in.log.log_start_offset == 1
