"""The one table of what this broker serves. ApiVersions is derived from it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from broker.handlers import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    alter_configs,
    alter_partition_reassignments,
    api_versions,
    create_partitions,
    create_topics,
    delete_groups,
    delete_records,
    delete_topics,
    describe_cluster,
    describe_configs,
    describe_groups,
    describe_log_dirs,
    describe_producers,
    describe_topic_partitions,
    describe_transactions,
    elect_leaders,
    end_txn,
    fetch,
    find_coordinator,
    heartbeat,
    incremental_alter_configs,
    init_producer_id,
    join_group,
    leave_group,
    list_config_resources,
    list_groups,
    list_offsets,
    list_partition_reassignments,
    list_transactions,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    single_produce,
    sync_group,
    txn_offset_commit,
    write_txn_markers,
)
from broker.server.dispatch import Api
from protocol.api import ApiKey
from protocol.schema import Versions

if TYPE_CHECKING:
    from broker.broker import Broker


def served_by(broker: Broker) -> list[Api]:
    return [
        Api(
            ApiKey.PRODUCE,
            partial(produce.handle, broker),
            advertised_from=0,
            short_way=single_produce.SingleProduce(broker),
        ),
        Api(ApiKey.FETCH, partial(fetch.handle, broker)),
        Api(ApiKey.LIST_OFFSETS, partial(list_offsets.handle, broker)),
        Api(ApiKey.METADATA, partial(metadata.handle, broker)),
        Api(ApiKey.OFFSET_COMMIT, partial(offset_commit.handle, broker)),
        Api(ApiKey.OFFSET_FETCH, partial(offset_fetch.handle, broker)),
        Api(ApiKey.FIND_COORDINATOR, partial(find_coordinator.handle, broker)),
        Api(ApiKey.JOIN_GROUP, partial(join_group.handle, broker)),
        Api(ApiKey.HEARTBEAT, partial(heartbeat.handle, broker)),
        Api(ApiKey.LEAVE_GROUP, partial(leave_group.handle, broker)),
        Api(ApiKey.SYNC_GROUP, partial(sync_group.handle, broker)),
        Api(ApiKey.DESCRIBE_GROUPS, partial(describe_groups.handle, broker)),
        Api(ApiKey.LIST_GROUPS, partial(list_groups.handle, broker)),
        Api(ApiKey.API_VERSIONS, partial(api_versions.handle, broker)),
        Api(ApiKey.CREATE_TOPICS, partial(create_topics.handle, broker)),
        Api(ApiKey.DELETE_TOPICS, partial(delete_topics.handle, broker)),
        Api(ApiKey.DELETE_RECORDS, partial(delete_records.handle, broker)),
        Api(ApiKey.INIT_PRODUCER_ID, partial(init_producer_id.handle, broker), versions=Versions(0, 5)),
        Api(ApiKey.ADD_PARTITIONS_TO_TXN, partial(add_partitions_to_txn.handle, broker)),
        Api(ApiKey.ADD_OFFSETS_TO_TXN, partial(add_offsets_to_txn.handle, broker)),
        Api(ApiKey.END_TXN, partial(end_txn.handle, broker)),
        Api(ApiKey.DESCRIBE_TRANSACTIONS, partial(describe_transactions.handle, broker)),
        Api(ApiKey.LIST_TRANSACTIONS, partial(list_transactions.handle, broker)),
        Api(ApiKey.OFFSET_FOR_LEADER_EPOCH, partial(offset_for_leader_epoch.handle, broker)),
        Api(ApiKey.WRITE_TXN_MARKERS, partial(write_txn_markers.handle, broker)),
        Api(ApiKey.TXN_OFFSET_COMMIT, partial(txn_offset_commit.handle, broker)),
        Api(ApiKey.DESCRIBE_CONFIGS, partial(describe_configs.handle, broker)),
        Api(ApiKey.ALTER_CONFIGS, partial(alter_configs.handle, broker)),
        Api(ApiKey.DESCRIBE_LOG_DIRS, partial(describe_log_dirs.handle, broker)),
        Api(ApiKey.CREATE_PARTITIONS, partial(create_partitions.handle, broker)),
        Api(ApiKey.DELETE_GROUPS, partial(delete_groups.handle, broker)),
        Api(ApiKey.ELECT_LEADERS, partial(elect_leaders.handle, broker)),
        Api(ApiKey.INCREMENTAL_ALTER_CONFIGS, partial(incremental_alter_configs.handle, broker)),
        Api(ApiKey.ALTER_PARTITION_REASSIGNMENTS, partial(alter_partition_reassignments.handle, broker)),
        Api(ApiKey.LIST_PARTITION_REASSIGNMENTS, partial(list_partition_reassignments.handle, broker)),
        Api(ApiKey.OFFSET_DELETE, partial(offset_delete.handle, broker)),
        Api(ApiKey.DESCRIBE_CLUSTER, partial(describe_cluster.handle, broker)),
        Api(ApiKey.DESCRIBE_PRODUCERS, partial(describe_producers.handle, broker)),
        Api(ApiKey.LIST_CONFIG_RESOURCES, partial(list_config_resources.handle, broker)),
        Api(ApiKey.DESCRIBE_TOPIC_PARTITIONS, partial(describe_topic_partitions.handle, broker)),
    ]
