from barnabas.broker.transaction.metadata import LAST_EPOCH
from tests.broker.transaction.harness import metadata


def test_one_epoch_is_left_to_fence_the_last_producer():
    assert LAST_EPOCH == 32766
    assert not metadata(epoch=32765).is_epoch_exhausted
    assert metadata(epoch=32766).is_epoch_exhausted
    assert metadata(epoch=32767).is_epoch_exhausted
