"""The one table of what this broker serves. ApiVersions is derived from it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from barnabas.broker.handlers import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    allocate_producer_ids,
    alter_client_quotas,
    alter_configs,
    alter_partition,
    alter_partition_reassignments,
    alter_share_group_offsets,
    alter_user_scram_credentials,
    api_versions,
    consumer_group_describe,
    consumer_group_heartbeat,
    controlled_shutdown,
    create_acls,
    create_delegation_token,
    create_partitions,
    create_topics,
    delete_acls,
    delete_groups,
    delete_records,
    delete_share_group_offsets,
    delete_share_group_state,
    delete_topics,
    describe_acls,
    describe_client_quotas,
    describe_cluster,
    describe_configs,
    describe_delegation_token,
    describe_groups,
    describe_log_dirs,
    describe_producers,
    describe_share_group_offsets,
    describe_topic_partitions,
    describe_transactions,
    describe_user_scram_credentials,
    elect_leaders,
    end_txn,
    expire_delegation_token,
    fetch,
    find_coordinator,
    heartbeat,
    incremental_alter_configs,
    init_producer_id,
    initialize_share_group_state,
    join_group,
    leader_and_isr,
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
    read_share_group_state,
    read_share_group_state_summary,
    renew_delegation_token,
    sasl_authenticate,
    sasl_handshake,
    share_acknowledge,
    share_fetch,
    share_group_describe,
    share_group_heartbeat,
    single_produce,
    stop_replica,
    streams_group_describe,
    streams_group_heartbeat,
    sync_group,
    txn_offset_commit,
    update_metadata,
    write_share_group_state,
    write_txn_markers,
)
from barnabas.broker.handlers.guard import guarded
from barnabas.broker.server.dispatch import Api, Handled
from barnabas.broker.server.request import Request
from barnabas.protocol.api import ApiKey, response_type
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.schema import Versions

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

BrokersHandler = Callable[["Broker", Request | None, Any], Coroutine[Any, Any, Any]]

# Requests between brokers, and the controller's orders. A broker serves its own by a direct call, without a request.
BETWEEN_BROKERS: Final[dict[ApiKey, BrokersHandler]] = {
    ApiKey.LEADER_AND_ISR: leader_and_isr.handle,
    ApiKey.STOP_REPLICA: stop_replica.handle,
    ApiKey.UPDATE_METADATA: update_metadata.handle,
    ApiKey.CONTROLLED_SHUTDOWN: controlled_shutdown.handle,
    ApiKey.ALTER_PARTITION: alter_partition.handle,
    ApiKey.ALLOCATE_PRODUCER_IDS: allocate_producer_ids.handle,
}
SERVED_DIRECTLY: Final[dict[ApiKey, BrokersHandler]] = {**BETWEEN_BROKERS, ApiKey.CREATE_TOPICS: create_topics.handle}


def _for_brokers_only(broker: Broker, handle: BrokersHandler, request: Request, message: Any) -> Handled:
    """Refuse requests that only brokers may send if anybody else sends them."""
    if not request.connection.is_from_broker:
        answer: Any = response_type(request.api_key)
        refusal: Handled = answer(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        return refusal
    return handle(broker, request, message)


def served_by(broker: Broker) -> list[Api]:
    between_brokers = [
        Api(key, partial(_for_brokers_only, broker, handle), between_brokers=True)
        for key, handle in BETWEEN_BROKERS.items()
    ]
    apis = [
        *between_brokers,
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
        Api(ApiKey.CONSUMER_GROUP_HEARTBEAT, partial(consumer_group_heartbeat.handle, broker)),
        Api(ApiKey.CONSUMER_GROUP_DESCRIBE, partial(consumer_group_describe.handle, broker)),
        Api(ApiKey.STREAMS_GROUP_HEARTBEAT, partial(streams_group_heartbeat.handle, broker)),
        Api(ApiKey.STREAMS_GROUP_DESCRIBE, partial(streams_group_describe.handle, broker)),
        Api(ApiKey.SHARE_GROUP_HEARTBEAT, partial(share_group_heartbeat.handle, broker)),
        Api(ApiKey.SHARE_GROUP_DESCRIBE, partial(share_group_describe.handle, broker)),
        Api(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, partial(describe_share_group_offsets.handle, broker)),
        Api(ApiKey.ALTER_SHARE_GROUP_OFFSETS, partial(alter_share_group_offsets.handle, broker)),
        Api(ApiKey.DELETE_SHARE_GROUP_OFFSETS, partial(delete_share_group_offsets.handle, broker)),
        Api(ApiKey.DESCRIBE_GROUPS, partial(describe_groups.handle, broker)),
        Api(ApiKey.LIST_GROUPS, partial(list_groups.handle, broker)),
        Api(ApiKey.API_VERSIONS, partial(api_versions.handle, broker)),
        Api(ApiKey.SASL_HANDSHAKE, partial(sasl_handshake.handle, broker)),
        Api(ApiKey.SASL_AUTHENTICATE, partial(sasl_authenticate.handle, broker)),
        Api(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, partial(describe_user_scram_credentials.handle, broker)),
        Api(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, partial(alter_user_scram_credentials.handle, broker)),
        Api(ApiKey.DESCRIBE_CLIENT_QUOTAS, partial(describe_client_quotas.handle, broker)),
        Api(ApiKey.ALTER_CLIENT_QUOTAS, partial(alter_client_quotas.handle, broker)),
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
        Api(ApiKey.DESCRIBE_ACLS, partial(describe_acls.handle, broker)),
        Api(ApiKey.CREATE_ACLS, partial(create_acls.handle, broker)),
        Api(ApiKey.DELETE_ACLS, partial(delete_acls.handle, broker)),
        Api(ApiKey.CREATE_DELEGATION_TOKEN, partial(create_delegation_token.handle, broker)),
        Api(ApiKey.RENEW_DELEGATION_TOKEN, partial(renew_delegation_token.handle, broker)),
        Api(ApiKey.EXPIRE_DELEGATION_TOKEN, partial(expire_delegation_token.handle, broker)),
        Api(ApiKey.DESCRIBE_DELEGATION_TOKEN, partial(describe_delegation_token.handle, broker)),
        Api(ApiKey.SHARE_FETCH, partial(share_fetch.handle, broker)),
        Api(ApiKey.SHARE_ACKNOWLEDGE, partial(share_acknowledge.handle, broker)),
        Api(ApiKey.INITIALIZE_SHARE_GROUP_STATE, partial(initialize_share_group_state.handle, broker)),
        Api(ApiKey.READ_SHARE_GROUP_STATE, partial(read_share_group_state.handle, broker)),
        Api(ApiKey.WRITE_SHARE_GROUP_STATE, partial(write_share_group_state.handle, broker)),
        Api(ApiKey.DELETE_SHARE_GROUP_STATE, partial(delete_share_group_state.handle, broker)),
        Api(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, partial(read_share_group_state_summary.handle, broker)),
    ]
    return [replace(api, handle=guarded(api.key, api.handle)) for api in apis]
