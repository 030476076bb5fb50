"""Which brokers hold which partition."""

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import zip_longest

from barnabas.broker.controller.results import Refused
from barnabas.protocol.errors import ErrorCode

Pick = Callable[[int], int]
"""Picks a number from 0 up to the given one, which is not included."""


def spread_replicas(
    brokers: Mapping[int, str | None],
    num_partitions: int,
    replication_factor: int,
    *,
    start: int,
    shift: int,
    first_partition: int = 0,
) -> list[tuple[int, ...]]:
    """The replicas of `num_partitions` partitions, numbered from `first_partition`, over brokers with their racks.

    The first replicas go round the brokers, starting with the one at `start`. The others follow at a distance that
    starts at `shift` and grows by one per round. So the partitions that a broker leads have their followers on
    different brokers, and many brokers share the load of one that dies.

    If all brokers have racks, the replicas of a partition are spread over as many racks as possible.
    """
    count = len(brokers)
    if replication_factor > count:
        raise Refused(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"There cannot be {replication_factor} replicas of a partition on {count} broker(s)",
        )
    racks = {broker_id: rack for broker_id, rack in brokers.items() if rack is not None}
    # As Kafka's clients do if some brokers have no rack: it is not known where those are.
    with_racks = len(racks) == count
    in_order = _alternating(racks) if with_racks else sorted(brokers)
    assignments = []
    for partition in range(first_partition, first_partition + num_partitions):
        if partition > 0 and partition % count == 0:
            shift += 1
        first = (partition + start) % count
        if with_racks:
            assignments.append(_over_racks(in_order, racks, first, shift, replication_factor))
        else:
            others = (_follower(in_order, first, shift, number) for number in range(replication_factor - 1))
            assignments.append((in_order[first], *others))
    return assignments


def position_in_round(brokers: Mapping[int, str | None], first_replica: int) -> int:
    """Where the round of a topic started, given the first replica of its first partition, as Kafka finds it."""
    ids = sorted(brokers)
    return next((position for position, broker_id in enumerate(ids) if broker_id >= first_replica), 0)


def _follower(brokers: Sequence[int], first: int, shift: int, number: int) -> int:
    return brokers[(first + 1 + (shift + number) % (len(brokers) - 1)) % len(brokers)]


def _alternating(racks: Mapping[int, str]) -> list[int]:
    """The brokers in an order in which neighbours are in different racks, as far as possible."""
    by_rack = [
        [broker_id for broker_id in sorted(racks) if racks[broker_id] == rack] for rack in sorted({*racks.values()})
    ]
    return [broker_id for row in zip_longest(*by_rack) for broker_id in row if broker_id is not None]


def _over_racks(
    brokers: Sequence[int], racks: Mapping[int, str], first: int, shift: int, replication_factor: int
) -> tuple[int, ...]:
    all_racks = len({*racks.values()})
    replicas = [brokers[first]]
    used = {racks[brokers[first]]}
    number = 0
    while len(replicas) < replication_factor:
        candidate = _follower(brokers, first, shift * all_racks, number)
        number += 1
        if candidate not in replicas and (racks[candidate] not in used or len(used) == all_racks):
            replicas.append(candidate)
            used.add(racks[candidate])
    return tuple(replicas)


def check_replicas(replicas: Sequence[int], alive: Collection[int], replication_factor: int | None) -> None:
    """Refuse an invalid manual assignment. None: any replication factor is fine."""
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
