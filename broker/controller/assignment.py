"""Which brokers hold which partition."""

from collections.abc import Callable, Collection, Sequence

from broker.controller.decisions import Refused
from protocol.errors import ErrorCode

Pick = Callable[[int], int]
"""Picks a number from 0 up to, but not including, the given one."""


def spread_replicas(
    brokers: Sequence[int],
    num_partitions: int,
    replication_factor: int,
    *,
    start: int,
    shift: int,
    first_partition: int = 0,
) -> list[tuple[int, ...]]:
    """The replicas of `num_partitions` partitions, numbered from `first_partition`, over sorted broker ids.

    The first replicas go round the brokers, beginning with the one at `start`. The others follow the first one at a
    distance, which is `shift` at the beginning and grows by one with each round, so that the partitions that a broker
    leads have their followers on different brokers, and a broker that dies is replaced by many.
    """
    count = len(brokers)
    if replication_factor > count:
        raise Refused(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"There cannot be {replication_factor} replicas of a partition on {count} broker(s)",
        )
    assignments = []
    for partition in range(first_partition, first_partition + num_partitions):
        if partition > 0 and partition % count == 0:
            shift += 1
        first = (partition + start) % count
        others = ((first + 1 + (shift + follower) % (count - 1)) % count for follower in range(replication_factor - 1))
        assignments.append((brokers[first], *(brokers[other] for other in others)))
    return assignments


def check_replicas(replicas: Sequence[int], alive: Collection[int], replication_factor: int | None) -> None:
    """Refuse replicas that somebody wrote by hand and that cannot be. None: any replication factor will do."""
    if not replicas:
        raise Refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, "An assignment has an empty list of replicas")
    for broker_id in replicas:
        if broker_id not in alive:
            raise Refused(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"An assignment names broker {broker_id}, but there is no such broker",
            )
        if replicas.count(broker_id) > 1:
            raise Refused(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"An assignment names broker {broker_id} more than once"
            )
    if replication_factor is not None and len(replicas) != replication_factor:
        raise Refused(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"An assignment has {len(replicas)} replica(s), where the topic's other ones have {replication_factor}",
        )
