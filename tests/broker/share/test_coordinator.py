"""What a request asks of a share coordinator."""

from barnabas.broker.share.coordinator import _initialize, _not_initialized, _Operation
from barnabas.broker.share.key import SharePartitionKey


def test_an_operation_does_not_keep_a_copy_of_a_long_group_id():
    """A request may name a hundred thousand partitions of a group whose id has 32,767 characters."""
    key = SharePartitionKey("g" * 32_767, bytes(16), 7)
    operation = _Operation(key, None, _initialize, _not_initialized, lambda: None)
    assert operation.key == key.coordinator_key
    assert operation.key not in vars(operation).values()
