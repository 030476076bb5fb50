import pytest

from barnabas.broker.handlers.describe_share_group_offsets import _partition
from barnabas.protocol.messages.read_share_group_state_summary import PartitionResult
from barnabas.storage.config import MAX_INT64


@pytest.mark.parametrize(
    ("start", "done", "end", "lag"),
    [
        (5, 3, 20, 12),
        (-(2**63), 0, 20, MAX_INT64),  # whoever may initialize a state may say so
        (2**63 - 1, 2**31 - 1, 0, -MAX_INT64),
    ],
)
def test_a_lag_fits_into_its_field(start, done, end, lag):
    summary = PartitionResult(
        partition=0, error_code=0, state_epoch=0, leader_epoch=0, start_offset=start, delivery_complete_count=done
    )
    assert _partition(summary, end).lag == lag
