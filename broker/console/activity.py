"""What goes on at a broker: who is connected, transactions, what producers sent again, who led partitions when."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final

from barnabas.broker.console.errors import Forbidden, NotFound
from barnabas.broker.console.leader_stories import leader_changes
from barnabas.broker.console.paging import PAGE, Json, Query, paged
from barnabas.broker.console.transaction_stories import notes_of, transactions_of
from barnabas.broker.controller.topic_names import is_internal
from barnabas.broker.handlers.fetching import Fetch
from barnabas.broker.metrics.metrics import Metrics
from barnabas.broker.security.authorizer import Access
from barnabas.broker.testing.fleet import leader_of
from barnabas.broker.testing.state import connections
from barnabas.broker.transaction.metadata import TransactionMetadata
from barnabas.broker.transaction.shard import TransactionShard
from barnabas.broker.transaction.states import TransactionState
from barnabas.protocol.acls import AclOperation
from barnabas.protocol.error_counts import error_name
from barnabas.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.local_cluster import LocalCluster
    from barnabas.broker.replica.moments import Repeat

_DESCRIBE: Final = AclOperation.DESCRIBE
_MOST_CONNECTIONS: Final = 500
_MOST_REPEATS: Final = 200
_MOST_PARTITIONS: Final = 100


class Activity:
    def __init__(self, cluster: LocalCluster, metrics: Metrics) -> None:
        self._cluster = cluster
        self._metrics = metrics

    # --- connections ---

    def connections(self, access: Access, query: Query) -> Json:
        if not access.cluster(_DESCRIBE):
            raise Forbidden("you may not describe the cluster, and connections belong to it")
        found = connections(self._cluster)
        return {
            "total": len(found),
            "rows": found[:_MOST_CONNECTIONS],
            "requests": [
                {
                    "api": api.name,
                    "total": api.total,
                    "versions": sorted(api.by_version),
                    "errors": {error_name(code): count for code, count in api.errors.items()},
                    "median_ms": _quantile(api.times, 0.5),
                    "p99_ms": _quantile(api.times, 0.99),
                }
                for api in sorted(self._request_counts(), key=lambda api: -api.total)
                if api.total
            ],
        }

    def _request_counts(self) -> list[Any]:
        return [api for counts in self._metrics.requests.values() for api in counts.apis.values()]

    # --- transactions ---

    def _transactions(self, access: Access) -> dict[str, tuple[TransactionShard, TransactionMetadata]]:
        return {
            transactional_id: (shard, metadata)
            for broker in self._cluster.brokers
            for shard in broker.transactions.shards()
            for transactional_id, metadata in shard.transactions.items()
            if access.transactional_id(_DESCRIBE, transactional_id)
        }

    def transactions(self, access: Access, query: Query) -> Json:
        """Those that are open come first."""
        text = query.get("search", "").lower()
        found = {name: pair for name, pair in self._transactions(access).items() if text in name.lower()}
        order = sorted(found, key=lambda name: (found[name][1].state != TransactionState.ONGOING, name))
        return paged(order, query, lambda name: _described(found[name][1], access))

    def transaction(self, access: Access, query: Query) -> Json:
        name = query.get("name", "")
        shard, metadata = self._transactions(access).get(name, (None, None))
        if shard is None or metadata is None:
            raise NotFound(f"there is no transactional id {name!r}")
        now_ms = self._cluster.clock.now_ms()
        held_up = [
            self._held_up(each, metadata)
            for each in islice(sorted(metadata.partitions), _MOST_PARTITIONS)
            if access.topic(_DESCRIBE, each.topic)
        ]
        return {
            **_described(metadata, access),
            "stories": transactions_of(shard, name, now_ms),
            "notes": notes_of(shard, name),
            "held_up": [each for each in held_up if each is not None],
            "offsets": [each for each in self._pending(metadata.producer_id) if access.group(_DESCRIBE, each["group"])],
        }

    def _held_up(self, name: TopicPartition, metadata: TransactionMetadata) -> Json | None:
        """Where readers of committed records stand in this partition, and who of them waits."""
        partition = leader_of(self._cluster.brokers, *name)
        if partition is None:
            return None
        log = partition.log
        producer = log.producer_state.producers.get(metadata.producer_id)
        first = None if producer is None else producer.current_transaction_first_offset
        waiting = [each for each in partition.waiters if isinstance(each, Fetch) and each.reads_committed]
        return {
            "topic": name.topic,
            "partition": name.partition,
            "first_offset": first,
            "last_stable_offset": log.last_stable_offset,
            "high_watermark": log.high_watermark,
            "behind": log.high_watermark - log.last_stable_offset,
            "is_first": first is not None and first == log.last_stable_offset,
            "waiting": list(dict.fromkeys(each.client_id for each in waiting))[:PAGE],
        }

    def _pending(self, producer_id: int) -> list[Json]:
        """The offsets that groups get when the transaction is committed."""
        return [
            {"group": group_id, "topic": partition.topic, "partition": partition.partition, "offset": committed.offset}
            for broker in self._cluster.brokers
            for shard in broker.groups.shards
            for group_id, partition, committed in islice(shard.offsets.pending.of_producer(producer_id), PAGE)
        ]

    # --- producers ---

    def retries(self, access: Access, query: Query) -> Json:
        """What producers sent again, out of order, or too late; newest first."""
        all_of_them: Iterable[Repeat] = chain.from_iterable(
            broker.replicas.moments.repeats for broker in self._cluster.brokers
        )
        producer = query.get("producer")
        found = [
            each
            for each in all_of_them
            if access.topic(AclOperation.READ, each.topic) and producer in (None, "", str(each.producer_id))
        ]
        found.sort(key=lambda each: -each.at_ms)
        return {"total": len(found), "rows": [each._asdict() for each in found[:_MOST_REPEATS]]}

    # --- leaders ---

    def leaders(self, access: Access, query: Query) -> Json:
        """Who led partitions when; newest first. With `topic`, of that one alone."""
        topic = query.get("topic")
        return {
            "several": len(self._cluster.nodes) > 1,
            "changes": leader_changes(
                self._cluster,
                lambda name: (name == topic if topic else not is_internal(name)) and access.topic(_DESCRIBE, name),
            ),
            "events": [event._asdict() for event in reversed(self._cluster.events)][:PAGE],
        }


def _described(metadata: TransactionMetadata, access: Access) -> Json:
    shown = [each for each in sorted(metadata.partitions) if access.topic(_DESCRIBE, each.topic)]
    return {
        "name": metadata.transactional_id,
        "state": metadata.state.label,
        "producer_id": metadata.producer_id,
        "producer_epoch": metadata.producer_epoch,
        "timeout_ms": metadata.timeout_ms,
        "started_ms": metadata.start_ms,
        "updated_ms": metadata.last_update_ms,
        "partition_count": len(metadata.partitions),
        "partitions": [{"topic": topic, "partition": index} for topic, index in shown[:PAGE]],
    }


def _quantile(times: Iterable[float], quantile: float) -> float | None:
    found = sorted(times)
    return round(found[min(int(quantile * len(found)), len(found) - 1)] * 1000, 3) if found else None
