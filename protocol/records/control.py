"""The control records that end a transaction: each has its own batch, in every partition of the transaction.

key:    version int16 = 0, type int16: 0 abort, 1 commit
value:  version int16 = 0, coordinator epoch int32
"""

import struct
from enum import IntEnum
from typing import Final, NamedTuple

from barnabas.protocol.records.batch import BatchHeader
from barnabas.protocol.records.builder import NewRecord, build_batch
from barnabas.protocol.records.errors import CorruptRecords
from barnabas.protocol.records.record import read_records

_KEY: Final = struct.Struct(">hh")
_VALUE: Final = struct.Struct(">hi")
_VERSION: Final = 0


class ControlType(IntEnum):
    ABORT = 0
    COMMIT = 1


class EndTransactionMarker(NamedTuple):
    control_type: ControlType
    coordinator_epoch: int
    timestamp: int


def build_end_transaction_marker(
    control_type: ControlType,
    *,
    timestamp: int,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
    base_offset: int = 0,
    partition_leader_epoch: int = -1,
) -> bytearray:
    record = NewRecord(timestamp, _KEY.pack(_VERSION, control_type), _VALUE.pack(_VERSION, coordinator_epoch))
    return build_batch(
        [record],
        base_offset=base_offset,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=True,
        control=True,
        partition_leader_epoch=partition_leader_epoch,
    )


def read_end_transaction_marker(batch: memoryview, header: BatchHeader) -> EndTransactionMarker | None:
    """The marker in a control batch.

    None if there is none: compaction may leave an empty batch, and other types of control records exist.
    """
    for record in read_records(batch, header):
        if record.key is None or len(record.key) < _KEY.size:
            raise CorruptRecords("a control record has no type")
        _, control_type = _KEY.unpack_from(record.key)
        if control_type not in (ControlType.ABORT, ControlType.COMMIT):
            return None
        if record.value is None or len(record.value) < _VALUE.size:
            raise CorruptRecords("an end-transaction marker has no coordinator epoch")
        _, coordinator_epoch = _VALUE.unpack_from(record.value)
        return EndTransactionMarker(ControlType(control_type), coordinator_epoch, record.timestamp)
    return None
