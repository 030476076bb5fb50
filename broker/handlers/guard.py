"""The rights on the cluster that a whole request needs. Handlers check the rights on single resources.

With an authorizer, an API that is in none of these tables is only for super users, so that nobody can forget a check.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from barnabas.broker.server.dispatch import Handled, Handler
from barnabas.broker.server.request import Request
from barnabas.broker.share import persister
from barnabas.protocol.acls import AclOperation
from barnabas.protocol.api import ApiKey, response_type
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    ResponseEntityData,
    ResponseEntryData,
)
from barnabas.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from barnabas.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from barnabas.protocol.messages.create_acls import AclCreationResult, CreateAclsRequest, CreateAclsResponse
from barnabas.protocol.messages.delete_acls import DeleteAclsFilterResult, DeleteAclsRequest, DeleteAclsResponse
from barnabas.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from barnabas.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from barnabas.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from barnabas.protocol.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from barnabas.protocol.schema import Message

_O = AclOperation

# Requests before authentication, and those that reveal nothing about the cluster.
FREE: Final = frozenset({ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE})

# Their handlers check topics, groups, transactional ids, tokens, and what they show of the cluster.
CHECKED_BY_HANDLERS: Final = frozenset(
    {
        ApiKey.PRODUCE,
        ApiKey.FETCH,
        ApiKey.LIST_OFFSETS,
        ApiKey.METADATA,
        ApiKey.OFFSET_COMMIT,
        ApiKey.OFFSET_FETCH,
        ApiKey.FIND_COORDINATOR,
        ApiKey.JOIN_GROUP,
        ApiKey.HEARTBEAT,
        ApiKey.LEAVE_GROUP,
        ApiKey.SYNC_GROUP,
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        ApiKey.CONSUMER_GROUP_DESCRIBE,
        ApiKey.SHARE_FETCH,
        ApiKey.SHARE_ACKNOWLEDGE,
        ApiKey.SHARE_GROUP_HEARTBEAT,
        ApiKey.SHARE_GROUP_DESCRIBE,
        ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
        ApiKey.ALTER_SHARE_GROUP_OFFSETS,
        ApiKey.DELETE_SHARE_GROUP_OFFSETS,
        ApiKey.STREAMS_GROUP_HEARTBEAT,
        ApiKey.STREAMS_GROUP_DESCRIBE,
        ApiKey.DESCRIBE_GROUPS,
        ApiKey.LIST_GROUPS,
        ApiKey.CREATE_TOPICS,
        ApiKey.DELETE_TOPICS,
        ApiKey.DELETE_RECORDS,
        ApiKey.INIT_PRODUCER_ID,
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
        ApiKey.ADD_PARTITIONS_TO_TXN,
        ApiKey.ADD_OFFSETS_TO_TXN,
        ApiKey.END_TXN,
        ApiKey.TXN_OFFSET_COMMIT,
        ApiKey.DESCRIBE_CONFIGS,
        ApiKey.ALTER_CONFIGS,
        ApiKey.CREATE_PARTITIONS,
        ApiKey.DELETE_GROUPS,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        ApiKey.OFFSET_DELETE,
        ApiKey.DESCRIBE_CLUSTER,
        ApiKey.DESCRIBE_PRODUCERS,
        ApiKey.DESCRIBE_TRANSACTIONS,
        ApiKey.LIST_TRANSACTIONS,
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
        ApiKey.CREATE_DELEGATION_TOKEN,
        ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
        ApiKey.DESCRIBE_DELEGATION_TOKEN,
    }
)

# The operations on the cluster of which a request needs one.
ON_CLUSTER: Final[dict[ApiKey, tuple[AclOperation, ...]]] = {
    ApiKey.LEADER_AND_ISR: (_O.CLUSTER_ACTION,),
    ApiKey.STOP_REPLICA: (_O.CLUSTER_ACTION,),
    ApiKey.UPDATE_METADATA: (_O.CLUSTER_ACTION,),
    ApiKey.CONTROLLED_SHUTDOWN: (_O.CLUSTER_ACTION,),
    ApiKey.ALTER_PARTITION: (_O.CLUSTER_ACTION,),
    ApiKey.ALLOCATE_PRODUCER_IDS: (_O.CLUSTER_ACTION,),
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: (_O.CLUSTER_ACTION,),
    ApiKey.READ_SHARE_GROUP_STATE: (_O.CLUSTER_ACTION,),
    ApiKey.WRITE_SHARE_GROUP_STATE: (_O.CLUSTER_ACTION,),
    ApiKey.DELETE_SHARE_GROUP_STATE: (_O.CLUSTER_ACTION,),
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: (_O.CLUSTER_ACTION,),
    ApiKey.WRITE_TXN_MARKERS: (_O.ALTER, _O.CLUSTER_ACTION),
    ApiKey.DESCRIBE_ACLS: (_O.DESCRIBE,),
    ApiKey.CREATE_ACLS: (_O.ALTER,),
    ApiKey.DELETE_ACLS: (_O.ALTER,),
    ApiKey.DESCRIBE_LOG_DIRS: (_O.DESCRIBE,),
    ApiKey.ELECT_LEADERS: (_O.ALTER,),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: (_O.ALTER,),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: (_O.DESCRIBE,),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: (_O.DESCRIBE_CONFIGS,),
    ApiKey.ALTER_CLIENT_QUOTAS: (_O.ALTER_CONFIGS,),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: (_O.DESCRIBE,),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: (_O.ALTER,),
    ApiKey.LIST_CONFIG_RESOURCES: (_O.DESCRIBE_CONFIGS,),
}


def guarded(key: ApiKey, handle: Handler) -> Handler:
    """A handler that is called only for clients that may send such requests at all."""
    if key in FREE or key in CHECKED_BY_HANDLERS:
        return handle
    return partial(_guarded, ON_CLUSTER.get(key), handle)


def _guarded(operations: tuple[AclOperation, ...] | None, handle: Handler, request: Request, message: Any) -> Handled:
    access = request.connection.access
    if access is None or access.is_super_users or (operations is not None and access.cluster(*operations)):
        return handle(request, message)
    if operations is None:
        request.fail(f"{request.api_key.api_name} is for super users")
        return None
    return refusal(request.api_key, message)


def refusal(key: ApiKey, message: Any) -> Message:
    """The answer to a client that may not send such a request."""
    special = _REFUSALS.get(key)
    if special is not None:
        return special(message)
    answer: Any = response_type(key)
    told: Message = answer(error_code=_ERROR, **_BESIDES.get(key, {}))
    return told


_ERROR: Final = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
_TEXT: Final = "Cluster authorization failed."


def _elect_leaders(message: ElectLeadersRequest) -> ElectLeadersResponse:
    return ElectLeadersResponse(
        error_code=_ERROR,
        replica_election_results=[
            ReplicaElectionResult(
                topic=topic.topic,
                partition_result=[
                    PartitionResult(partition_id=index, error_code=_ERROR, error_message=_TEXT)
                    for index in topic.partitions
                ],
            )
            for topic in message.topic_partitions or ()
        ],
    )


def _alter_partition_reassignments(message: AlterPartitionReassignmentsRequest) -> AlterPartitionReassignmentsResponse:
    return AlterPartitionReassignmentsResponse(
        error_code=_ERROR,
        error_message=_TEXT,
        responses=[
            ReassignableTopicResponse(
                name=topic.name,
                partitions=[
                    ReassignablePartitionResponse(
                        partition_index=each.partition_index, error_code=_ERROR, error_message=_TEXT
                    )
                    for each in topic.partitions
                ],
            )
            for topic in message.topics
        ],
    )


def _list_partition_reassignments(message: ListPartitionReassignmentsRequest) -> ListPartitionReassignmentsResponse:
    return ListPartitionReassignmentsResponse(
        error_code=_ERROR,
        error_message=_TEXT,
        topics=[
            OngoingTopicReassignment(
                name=topic.name,
                partitions=[
                    OngoingPartitionReassignment(
                        partition_index=index, replicas=[], adding_replicas=[], removing_replicas=[]
                    )
                    for index in topic.partition_indexes
                ],
            )
            for topic in message.topics or ()
        ],
    )


def _write_txn_markers(message: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
    return WriteTxnMarkersResponse(
        markers=[
            WritableTxnMarkerResult(
                producer_id=marker.producer_id,
                topics=[
                    WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=[
                            WritableTxnMarkerPartitionResult(partition_index=index, error_code=_ERROR)
                            for index in topic.partition_indexes
                        ],
                    )
                    for topic in marker.topics
                ],
            )
            for marker in message.markers
        ]
    )


def _describe_user_scram_credentials(
    message: DescribeUserScramCredentialsRequest,
) -> DescribeUserScramCredentialsResponse:
    """As in Kafka, an error for each user who was asked for, without names."""
    refused = DescribeUserScramCredentialsResult(user="", error_code=_ERROR, error_message=_TEXT, credential_infos=[])
    return DescribeUserScramCredentialsResponse(
        error_code=_ERROR, error_message=_TEXT, results=[refused for _ in message.users or ()]
    )


def _alter_user_scram_credentials(message: AlterUserScramCredentialsRequest) -> AlterUserScramCredentialsResponse:
    deleted, set_ = ([wish.name for wish in wishes] for wishes in (message.deletions, message.upsertions))
    users = dict.fromkeys([*deleted, *set_])
    return AlterUserScramCredentialsResponse(
        results=[AlterUserScramCredentialsResult(user=user, error_code=_ERROR, error_message=_TEXT) for user in users]
    )


def _create_acls(message: CreateAclsRequest) -> CreateAclsResponse:
    return CreateAclsResponse(
        results=[AclCreationResult(error_code=_ERROR, error_message=_TEXT) for _ in message.creations]
    )


def _delete_acls(message: DeleteAclsRequest) -> DeleteAclsResponse:
    return DeleteAclsResponse(
        filter_results=[
            DeleteAclsFilterResult(error_code=_ERROR, error_message=_TEXT, matching_acls=[]) for _ in message.filters
        ]
    )


def _alter_client_quotas(message: AlterClientQuotasRequest) -> AlterClientQuotasResponse:
    return AlterClientQuotasResponse(
        entries=[
            ResponseEntryData(
                error_code=_ERROR,
                error_message=_TEXT,
                entity=[
                    ResponseEntityData(entity_type=each.entity_type, entity_name=each.entity_name)
                    for each in entry.entity
                ],
            )
            for entry in message.entries
        ]
    )


# Other required fields of an answer with one error for all.
_BESIDES: Final[dict[ApiKey, dict[str, Any]]] = {
    ApiKey.DESCRIBE_ACLS: {"error_message": _TEXT, "resources": []},
    ApiKey.DESCRIBE_LOG_DIRS: {"results": []},
    ApiKey.DESCRIBE_CLIENT_QUOTAS: {"error_message": _TEXT, "entries": None},
    ApiKey.LIST_CONFIG_RESOURCES: {"config_resources": []},
}

# Answers that need more than one error for all.
_REFUSALS: Final[dict[ApiKey, Callable[[Any], Message]]] = {
    ApiKey.ELECT_LEADERS: _elect_leaders,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: _alter_partition_reassignments,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: _list_partition_reassignments,
    ApiKey.WRITE_TXN_MARKERS: _write_txn_markers,
    **{api.key: partial(persister.refused, api, _ERROR) for api in persister.APIS},
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: _describe_user_scram_credentials,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: _alter_user_scram_credentials,
    ApiKey.CREATE_ACLS: _create_acls,
    ApiKey.DELETE_ACLS: _delete_acls,
    ApiKey.ALTER_CLIENT_QUOTAS: _alter_client_quotas,
}
