"""The same requests, by users with the same rights, get the same answers from Apache Kafka and from Barnabas.

Each API is asked by one user who has all rights that it needs, by users who lack one of them, by one who has none, and
by some who have others.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pytest

from barnabas.client.requests import acls, admin, data, groups, lookup, share_groups, tokens, transactions, users
from barnabas.client.requests.records import batch
from barnabas.client.requests.streams import (
    streams_group_describe,
    streams_group_heartbeat,
    subtopology,
    topology,
)
from barnabas.protocol.acls import AclOperation, PatternType, PermissionType, ResourceType
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    OpData,
    RequestEntityData,
    RequestEntryData,
)
from barnabas.protocol.messages.describe_client_quotas import DescribeClientQuotasRequest
from barnabas.protocol.messages.describe_cluster import DescribeClusterRequest
from barnabas.protocol.messages.describe_groups import DescribeGroupsRequest
from barnabas.protocol.messages.describe_transactions import DescribeTransactionsRequest
from barnabas.protocol.messages.list_groups import ListGroupsRequest
from barnabas.protocol.messages.list_transactions import ListTransactionsRequest
from tests.support.acl_side_by_side import ADMIN, GuardedSide, guarded
from tests.support.side_by_side import SideBySide

pytestmark = pytest.mark.java

UNKNOWN_ID = bytes(range(16))
TIME = 1_700_000_000_000
SETTINGS = {
    "node.id": "1",
    "num.partitions": "1",
    "delete.topic.enable": "true",
    "group.streams.assignment.interval.ms": "0",
    "group.streams.initial.rebalance.delay.ms": "0",
}
TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32  # the resources of settings


class Case(NamedTuple):
    key: ApiKey
    versions: Sequence[int]
    request: Callable[[GuardedSide, int], Any]
    needs: Sequence[str]
    others: Sequence[Sequence[str]] = ()  # rights of further users

    def rights(self) -> list[Sequence[str]]:
        some = [[right for right in self.needs if right != missing] for missing in self.needs]
        unique: dict[tuple[str, ...], None] = {}
        for each in (self.needs, (), *some, *self.others):
            unique[tuple(each)] = None
        return list(unique)


def topic(side, name, version, from_version):
    return side.name(name, version >= from_version)


def records(**fields):
    return batch(b"value", timestamp=TIME, **fields)


def produce(side, version, *names, **fields):
    return data.produce(*((topic(side, name, version, 13), 0, records()) for name in names), **fields)


def transactional(side, version):
    own = records(producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
    parts = [(topic(side, "t", version, 13), 0, own), (topic(side, "u", version, 13), 0, records())]
    return data.produce(*parts, transactional_id="x")


def fetch(side, version, *names, **fields):
    return data.fetch(*((topic(side, name, version, 13), 0, 0) for name in names), **fields)


CASES = {
    "Produce": Case(
        ApiKey.PRODUCE,
        [3, 9, 12, 13],
        lambda side, version: produce(side, version, "t", "u"),
        ["write topic t", "write topic u"],
        [["read topic t"], ["all topic *", "deny write topic u"], ["write topic *"]],
    ),
    "Produce to what is not there": Case(
        ApiKey.PRODUCE,
        [9],
        lambda side, version: data.produce(("absent", 0, records()), ("t", 7, records())),
        ["write topic t", "write topic absent"],
    ),
    "Produce to an unknown id": Case(
        ApiKey.PRODUCE, [13], lambda side, version: data.produce((UNKNOWN_ID, 0, records())), ["write topic t"]
    ),
    "Produce in a transaction": Case(
        ApiKey.PRODUCE, [9], transactional, ["write topic t", "write topic u", "write transactional_id y"]
    ),
    "Fetch": Case(
        ApiKey.FETCH,
        [4, 12, 13, 17],
        lambda side, version: fetch(side, version, "t", "u"),
        ["read topic t", "read topic u"],
        [["describe topic t"], ["write topic t"], ["read topic *", "deny all topic u"], ["cluster_action cluster"]],
    ),
    "Fetch what is not there": Case(
        ApiKey.FETCH,
        [12],
        lambda side, version: data.fetch(("absent", 0, 0), ("t", 7, 0)),
        ["read topic t", "read topic absent"],
    ),
    "Fetch an unknown id": Case(
        ApiKey.FETCH, [13], lambda side, version: data.fetch((UNKNOWN_ID, 0, 0)), ["read topic t"]
    ),
    "Fetch as a follower": Case(
        ApiKey.FETCH,
        [11],
        lambda side, version: fetch(side, version, "t", replica_id=7),
        ["read topic t"],
    ),
    "ListOffsets": Case(
        ApiKey.LIST_OFFSETS,
        [1, 6, 10],
        lambda side, version: data.list_offsets(("t", 0, -1), ("u", 0, -2), ("absent", 0, -1)),
        ["describe topic t", "describe topic u", "describe topic absent"],
        [["read topic t"], ["write topic t"], ["alter_configs topic t"]],
    ),
    "ListOffsets twice": Case(
        ApiKey.LIST_OFFSETS,
        [6],
        lambda side, version: data.list_offsets(("t", 0, -1), ("t", 0, -1)),
        ["describe topic t"],
    ),
    "OffsetForLeaderEpoch": Case(
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
        [3, 4],
        lambda side, version: data.offset_for_leader_epoch(("t", 0, 0), ("u", 0, 0), ("absent", 0, 0)),
        ["describe topic t", "describe topic u"],
        [["cluster_action cluster"]],
    ),
    "Metadata of topics": Case(
        ApiKey.METADATA,
        [1, 4, 8, 9, 12, 13],
        lambda side, version: lookup.metadata(["t", "u", "absent", "no name"], **operations(version)),
        ["describe topic t", "describe topic u", "describe topic absent"],
        [
            ["read topic t", "describe_configs topic t"],
            ["all topic t", "deny delete topic t", "describe cluster"],
            ["all cluster"],
        ],
    ),
    "Metadata of all topics": Case(
        ApiKey.METADATA,
        [0, 4, 8, 12],
        lambda side, version: lookup.metadata(None if version else [], **operations(version)),
        ["describe topic t", "describe topic u"],
        [["create topic t"], ["alter cluster", "create cluster"]],
    ),
    "Metadata by ids": Case(
        ApiKey.METADATA,
        [12, 13],
        lambda side, version: lookup.metadata([side.name("t", True), side.name("u", True), UNKNOWN_ID]),
        ["describe topic t", "describe topic u"],
    ),
    "Metadata that creates": Case(
        ApiKey.METADATA,
        [4, 12],
        lambda side, version: lookup.metadata(["made", "no name"], create=True),
        ["describe topic made", "describe topic no"],
        [["create cluster"], ["create topic made"]],
    ),
    "DescribeTopicPartitions": Case(
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
        [0],
        lambda side, version: admin.describe_topic_partitions("t", "u", "absent"),
        ["describe topic t", "describe topic u", "describe topic absent"],
        [["read topic t", "alter_configs topic t"]],
    ),
    "DescribeTopicPartitions of all": Case(
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
        [0],
        lambda side, version: admin.describe_topic_partitions(),
        ["describe topic t", "describe topic u"],
    ),
    "DescribeCluster": Case(
        ApiKey.DESCRIBE_CLUSTER,
        [0, 2],
        lambda side, version: DescribeClusterRequest(include_cluster_authorized_operations=True),
        ["describe cluster"],
        [["alter cluster"], ["create cluster"], ["all cluster", "deny idempotent_write cluster"]],
    ),
    "FindCoordinator": Case(
        ApiKey.FIND_COORDINATOR,
        [0, 3, 4, 6],
        lambda side, version: lookup.find_coordinator(version, *(("g", "h") if version >= 4 else ("g",))),
        ["describe group g", "describe group h"],
        [["read group g"]],
    ),
    "FindCoordinator of a transaction": Case(
        ApiKey.FIND_COORDINATOR,
        [1, 4],
        lambda side, version: lookup.find_coordinator(version, "x", key_type=1),
        ["describe transactional_id x"],
        [["write transactional_id x"]],
    ),
    "JoinGroup": Case(
        ApiKey.JOIN_GROUP,
        [0, 5, 7, 9],
        lambda side, version: groups.join_group("g", "nobody"),
        ["read group g"],
        [["describe group g"]],
    ),
    "SyncGroup": Case(
        ApiKey.SYNC_GROUP,
        [0, 3, 5],
        lambda side, version: groups.sync_group("g", "nobody", 1, protocol_type="consumer", protocol_name="range"),
        ["read group g"],
    ),
    "Heartbeat": Case(
        ApiKey.HEARTBEAT, [0, 4], lambda side, version: groups.heartbeat("g", "nobody", 1), ["read group g"]
    ),
    "LeaveGroup": Case(
        ApiKey.LEAVE_GROUP,
        [0, 3, 5],
        lambda side, version: groups.leave_group(version, "g", "nobody"),
        ["read group g"],
    ),
    "DescribeGroups": Case(
        ApiKey.DESCRIBE_GROUPS,
        [0, 3, 6],
        lambda side, version: DescribeGroupsRequest(
            groups=["g", "h"], **({"include_authorized_operations": True} if version >= 3 else {})
        ),
        ["describe group g", "describe group h"],
        [["read group g"], ["all group *"]],
    ),
    "StreamsGroupHeartbeat": Case(
        ApiKey.STREAMS_GROUP_HEARTBEAT,
        [0],
        lambda side, version: streams_group_heartbeat("nogroup", "m", 1),
        ["read group nogroup"],
        [["describe group nogroup"]],
    ),
    "StreamsGroupHeartbeat with a topology": Case(
        ApiKey.STREAMS_GROUP_HEARTBEAT,
        [0],
        lambda side, version: streams_group_heartbeat(
            "s", "m", 0, topology=topology(subtopology("0", "t", sinks=["u"], changelogs=["absent"])), rack_id=""
        ),
        ["read group s", "describe topic t", "describe topic u", "describe topic absent"],
        [["read group s", "read topic *"]],
    ),
    "StreamsGroupHeartbeat of who may not create topics": Case(
        ApiKey.STREAMS_GROUP_HEARTBEAT,
        [0],
        lambda side, version: streams_group_heartbeat(
            "s", "m", 0, topology=topology(subtopology("0", "t", changelogs=["absent"]))
        ),
        ["read group s", "describe topic t", "describe topic absent"],
    ),
    "StreamsGroupDescribe": Case(
        ApiKey.STREAMS_GROUP_DESCRIBE,
        [0],
        lambda side, version: streams_group_describe("flow", "h", operations=True),
        ["describe group flow", "describe group h", "describe topic t", "describe topic u"],
        [["read group flow", "read topic *"]],
    ),
    "ListGroups": Case(
        ApiKey.LIST_GROUPS,
        [0, 5],
        lambda side, version: ListGroupsRequest(states_filter=[], types_filter=[]),
        ["describe cluster"],
        [["describe group g"], ["read group h*"]],
    ),
    "DeleteGroups": Case(
        ApiKey.DELETE_GROUPS,
        [0, 2],
        lambda side, version: groups.delete_groups("nogroup", "other"),
        ["delete group nogroup", "delete group other"],
        [["read group nogroup"]],
    ),
    "ShareGroupHeartbeat": Case(
        ApiKey.SHARE_GROUP_HEARTBEAT,
        [1],
        lambda side, version: share_groups.share_group_heartbeat("share", "nobody", 5, ["t", "u"]),
        ["read group share", "describe topic t", "describe topic u"],
        [["describe group share"], ["read group share", "read topic t", "read topic u"]],
    ),
    "ShareGroupDescribe": Case(
        ApiKey.SHARE_GROUP_DESCRIBE,
        [1],
        lambda side, version: share_groups.share_group_describe("share", "h", operations=True),
        ["describe group share", "describe group h"],
        [["read group share"]],
    ),
    "DescribeShareGroupOffsets": Case(
        ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
        [0, 1],
        lambda side, version: share_groups.describe_share_group_offsets(
            {"share": {"absent": [0], "absent-too": [0, 1]}, "h": None}
        ),
        ["describe group share", "describe group h", "describe topic absent"],
        [["read group share", "read group h"]],
    ),
    "AlterShareGroupOffsets": Case(
        ApiKey.ALTER_SHARE_GROUP_OFFSETS,
        [0],
        lambda side, version: share_groups.alter_share_group_offsets("share", ("absent", 0, 1), ("t", 7, 1)),
        ["read group share", "read topic absent", "read topic t"],
        [["describe group share"], ["read group share", "describe topic t"]],
    ),
    "DeleteShareGroupOffsets": Case(
        ApiKey.DELETE_SHARE_GROUP_OFFSETS,
        [0],
        lambda side, version: share_groups.delete_share_group_offsets("no-share", "absent", "t"),
        ["delete group no-share", "read topic absent", "read topic t"],
        [["read group no-share"]],
    ),
    "OffsetCommit": Case(
        ApiKey.OFFSET_COMMIT,
        [2, 9, 10],
        lambda side, version: groups.offset_commit(
            "g", (topic(side, "t", version, 10), 0, 1), (topic(side, "u", version, 10), 0, 1)
        ),
        ["read group g", "read topic t", "read topic u"],
        [["describe group g"]],
    ),
    "OffsetCommit of what is not there": Case(
        ApiKey.OFFSET_COMMIT,
        [9],
        lambda side, version: groups.offset_commit("g", ("absent", 0, 1), ("t", 7, 1)),
        ["read group g", "read topic t", "read topic absent"],
    ),
    "OffsetFetch": Case(
        ApiKey.OFFSET_FETCH,
        [1, 2, 7, 8, 10],
        lambda side, version: groups.offset_fetch(
            version, {"g": [(topic(side, "t", version, 10), [0]), (topic(side, "u", version, 10), [0])]}
        ),
        ["describe group g", "describe topic t", "describe topic u"],
        [["read group g", "read topic t"]],
    ),
    "OffsetFetch of all": Case(
        ApiKey.OFFSET_FETCH,
        [2, 8, 10],
        lambda side, version: groups.offset_fetch(version, {"g": None}),
        ["describe group g", "describe topic t", "describe topic u"],
    ),
    "OffsetFetch of an unknown id": Case(
        ApiKey.OFFSET_FETCH,
        [10],
        lambda side, version: groups.offset_fetch(version, {"g": [(UNKNOWN_ID, [0])]}),
        ["describe group g"],
    ),
    "OffsetDelete": Case(
        ApiKey.OFFSET_DELETE,
        [0],
        lambda side, version: groups.offset_delete("g", ("t", 7), ("absent", 0)),
        ["delete group g", "read topic t", "read topic absent"],
    ),
    "CreateTopics": Case(
        ApiKey.CREATE_TOPICS,
        [2, 7],
        lambda side, version: admin.create_topics(
            admin.new_topic("new"), admin.new_topic("t"), admin.new_topic("no name"), validate_only=True
        ),
        ["create cluster", "describe_configs topic new"],
        [["create topic new"], ["create topic new", "describe_configs topic new"], ["create topic t"]],
    ),
    "CreatePartitions": Case(
        ApiKey.CREATE_PARTITIONS,
        [0, 3],
        lambda side, version: admin.create_partitions(("t", 5), ("absent", 5), validate_only=True),
        ["alter topic t", "alter topic absent"],
        [["alter cluster"]],
    ),
    "DeleteTopics": Case(
        ApiKey.DELETE_TOPICS,
        [1, 5, 6],
        lambda side, version: admin.delete_topics("absent", "missing"),
        ["delete topic absent", "delete topic missing"],
        [["describe topic absent"], ["all cluster"]],
    ),
    "DeleteTopics that are there": Case(
        ApiKey.DELETE_TOPICS,
        [5, 6],
        lambda side, version: admin.delete_topics("t"),
        [],
        [["describe topic t"], ["alter topic t"]],
    ),
    "DeleteTopics by ids": Case(
        ApiKey.DELETE_TOPICS,
        [6],
        lambda side, version: admin.delete_topics(side.name("t", True), UNKNOWN_ID),
        [],
        [["describe topic t"]],
    ),
    "DeleteRecords": Case(
        ApiKey.DELETE_RECORDS,
        [0, 2],
        lambda side, version: admin.delete_records(("t", 0, 0), ("u", 0, 0), ("absent", 0, 0)),
        ["delete topic t", "delete topic u", "delete topic absent"],
        [["write topic t"]],
    ),
    "InitProducerId": Case(
        ApiKey.INIT_PRODUCER_ID,
        [0, 4],
        lambda side, version: transactions.init_producer_id(None),
        ["idempotent_write cluster"],
        [
            ["write topic t"],
            ["read topic t"],
            ["write topic t*"],
            ["write topic *"],
            ["write topic t", "deny write topic t"],
            ["write topic t", "deny write topic *"],
            ["write topic tt", "deny write topic t*"],
            ["write topic t*", "deny write topic tt*"],
            ["write topic t*", "deny write topic t"],
            ["all topic t"],
        ],
    ),
    "InitProducerId with a transactional id": Case(
        ApiKey.INIT_PRODUCER_ID,
        [0, 4],
        lambda side, version: transactions.init_producer_id("bad", timeout_ms=-1),
        ["write transactional_id bad"],
        [["describe transactional_id bad"], ["idempotent_write cluster"]],
    ),
    "AddPartitionsToTxn": Case(
        ApiKey.ADD_PARTITIONS_TO_TXN,
        [0, 3],
        lambda side, version: transactions.add_partitions_to_txn(version, "none", 9, 0, ("t", 0), ("u", 0)),
        ["write transactional_id none", "write topic t", "write topic u"],
    ),
    "AddPartitionsToTxn by brokers": Case(
        ApiKey.ADD_PARTITIONS_TO_TXN,
        [4, 5],
        lambda side, version: transactions.add_partitions_to_txn(version, "none", 9, 0, ("t", 0), ("u", 0)),
        ["cluster_action cluster"],
        [["write transactional_id none", "write topic t", "write topic u"]],
    ),
    "AddOffsetsToTxn": Case(
        ApiKey.ADD_OFFSETS_TO_TXN,
        [0, 4],
        lambda side, version: transactions.add_offsets_to_txn("none", 9, 0, "g"),
        ["write transactional_id none", "read group g"],
    ),
    "EndTxn": Case(
        ApiKey.END_TXN,
        [0, 5],
        lambda side, version: transactions.end_txn("none", 9, 0, commit=True),
        ["write transactional_id none"],
    ),
    "TxnOffsetCommit": Case(
        ApiKey.TXN_OFFSET_COMMIT,
        [0, 3],
        lambda side, version: transactions.txn_offset_commit("none", "g", 9, 0, ("t", 0, 1), ("absent", 0, 1)),
        ["write transactional_id none", "read group g", "read topic absent"],
    ),
    "WriteTxnMarkers": Case(
        ApiKey.WRITE_TXN_MARKERS,
        [1],
        lambda side, version: transactions.write_txn_markers(9, 0, ("absent", 0)),
        ["cluster_action cluster"],
        [["alter cluster"], ["describe cluster"]],
    ),
    "DescribeTransactions": Case(
        ApiKey.DESCRIBE_TRANSACTIONS,
        [0],
        lambda side, version: DescribeTransactionsRequest(transactional_ids=["x", "none"]),
        ["describe transactional_id x", "describe transactional_id none"],
        [["write transactional_id x"]],
    ),
    "ListTransactions": Case(
        ApiKey.LIST_TRANSACTIONS,
        [0, 1],
        lambda side, version: ListTransactionsRequest(state_filters=[], producer_id_filters=[]),
        ["describe transactional_id x"],
        [["describe cluster"]],
    ),
    "DescribeProducers": Case(
        ApiKey.DESCRIBE_PRODUCERS,
        [0],
        lambda side, version: admin.describe_producers(("t", [0]), ("absent", [0]), ("no name", [0])),
        ["read topic t", "read topic absent"],
        [["describe topic t"]],
    ),
    "DescribeConfigs": Case(
        ApiKey.DESCRIBE_CONFIGS,
        [1, 4],
        lambda side, version: admin.describe_configs(
            (TOPIC, "t", ["retention.ms"]),
            (TOPIC, "absent", None),
            (BROKER, "1", ["num.partitions"]),
            (GROUP, "g", ["group.none"]),
        ),
        ["describe_configs topic t", "describe_configs cluster", "describe_configs group g"],
        [["alter_configs topic t"], ["describe topic t", "describe cluster"], ["describe_configs topic absent"]],
    ),
    "AlterConfigs": Case(
        ApiKey.ALTER_CONFIGS,
        [0, 2],
        lambda side, version: admin.alter_configs(
            (TOPIC, "t", [("retention.ms", "100000")]), (TOPIC, "absent", []), (BROKER, "1", []), validate_only=True
        ),
        ["alter_configs topic t", "alter_configs topic absent", "alter_configs cluster"],
        [["alter topic t"], ["describe_configs topic t"]],
    ),
    "IncrementalAlterConfigs": Case(
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        [0, 1],
        lambda side, version: admin.incremental_alter_configs(
            (TOPIC, "t", [(0, "retention.ms", "100000")]),
            (TOPIC, "absent", [(0, "retention.ms", "100000")]),
            (BROKER, "", [(0, "log.retention.ms", "100000")]),
            (GROUP, "g", []),
            validate_only=True,
        ),
        ["alter_configs topic t", "alter_configs topic absent", "alter_configs cluster", "alter_configs group g"],
    ),
    "ListConfigResources": Case(
        ApiKey.LIST_CONFIG_RESOURCES,
        [0],
        lambda side, version: admin.list_config_resources(),
        ["describe_configs cluster"],
        [["describe cluster"]],
    ),
    "DescribeLogDirs": Case(
        ApiKey.DESCRIBE_LOG_DIRS,
        [1, 3, 4],
        lambda side, version: admin.describe_log_dirs(("absent", [0])),
        ["describe cluster"],
        [["describe topic t"]],
    ),
    "ElectLeaders": Case(
        ApiKey.ELECT_LEADERS,
        [0, 2],
        lambda side, version: admin.elect_leaders(("t", [0]), ("absent", [0])),
        ["alter cluster"],
        [["describe cluster"]],
    ),
    "AlterPartitionReassignments": Case(
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        [0, 1],
        lambda side, version: admin.alter_partition_reassignments(("t", 0, None), ("absent", 0, None)),
        ["alter cluster"],
    ),
    "ListPartitionReassignments": Case(
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
        [0],
        lambda side, version: admin.list_partition_reassignments(("t", [0])),
        ["describe cluster"],
        [["alter cluster"]],
    ),
    "DescribeUserScramCredentials": Case(
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
        [0],
        lambda side, version: users.describe_users(["nobody", "noone"]),
        ["describe cluster"],
    ),
    "DescribeUserScramCredentials of all": Case(
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
        [0],
        lambda side, version: users.describe_users([]),
        ["describe cluster"],
    ),
    "AlterUserScramCredentials": Case(
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        [0],
        lambda side, version: users.delete_credential("nobody", 1),
        ["alter cluster"],
        [["describe cluster"]],
    ),
    "DescribeClientQuotas": Case(
        ApiKey.DESCRIBE_CLIENT_QUOTAS,
        [0, 1],
        lambda side, version: DescribeClientQuotasRequest(components=[], strict=False),
        ["describe_configs cluster"],
        [["describe cluster"], ["alter_configs cluster"]],
    ),
    "AlterClientQuotas": Case(
        ApiKey.ALTER_CLIENT_QUOTAS,
        [0, 1],
        lambda side, version: AlterClientQuotasRequest(
            entries=[
                RequestEntryData(
                    entity=[RequestEntityData(entity_type="user", entity_name="nobody")],
                    ops=[OpData(key="producer_byte_rate", value=1000.0, remove=False)],
                )
            ],
            validate_only=True,
        ),
        ["alter_configs cluster"],
        [["describe_configs cluster"], ["alter cluster"]],
    ),
    "CreateAcls": Case(
        ApiKey.CREATE_ACLS,
        [1, 3],
        lambda side, version: acls.create_acls(acls.rule("User:x", AclOperation.READ, ResourceType.TOPIC, "")),
        ["alter cluster"],
        [["describe cluster"], ["create cluster"]],
    ),
    "DescribeAcls": Case(
        ApiKey.DESCRIBE_ACLS,
        [1, 3],
        lambda side, version: acls.describe_acls(acls.Rule(name="nothing")),
        ["describe cluster"],
        [["alter cluster"], ["create cluster"]],
    ),
    "DeleteAcls": Case(
        ApiKey.DELETE_ACLS,
        [1, 3],
        lambda side, version: acls.delete_acls(acls.Rule(name="nothing")),
        ["alter cluster"],
        [["describe cluster"]],
    ),
    # Without a key for delegation tokens. tests/integration/test_same_token_answers_as_kafka.py has one.
    "CreateDelegationToken": Case(
        ApiKey.CREATE_DELEGATION_TOKEN, [1, 2, 3], lambda side, version: tokens.create_token(), []
    ),
    "CreateDelegationToken for another": Case(
        ApiKey.CREATE_DELEGATION_TOKEN,
        [3],
        lambda side, version: tokens.create_token("bob"),
        ["create_tokens user User:bob"],
        [["create_tokens user bob"], ["describe_tokens user User:bob"], ["create_tokens user *"]],
    ),
    "RenewDelegationToken": Case(
        ApiKey.RENEW_DELEGATION_TOKEN, [1, 2], lambda side, version: tokens.renew_token(b"x"), []
    ),
    "ExpireDelegationToken": Case(
        ApiKey.EXPIRE_DELEGATION_TOKEN, [1, 2], lambda side, version: tokens.expire_token(b"x"), []
    ),
    "DescribeDelegationToken": Case(
        ApiKey.DESCRIBE_DELEGATION_TOKEN, [1, 2, 3], lambda side, version: tokens.describe_tokens(), []
    ),
}


def operations(version):
    fields = {"include_topic_authorized_operations": True} if version >= 8 else {}
    return fields | ({"include_cluster_authorized_operations": True} if 8 <= version <= 10 else {})


USERS = {
    f"u{place}-{number}": rights
    for place, case in enumerate(CASES.values())
    for number, rights in enumerate(case.rights())
}


@pytest.fixture(scope="module")
def brokers(tmp_path_factory):
    with guarded(tmp_path_factory.mktemp("data"), USERS, SETTINGS) as (kafka, barnabas):
        for side in (kafka, barnabas):
            for name in ("t", "u"):
                side.create_topic(name, 2)
                answer = side.ask(ApiKey.PRODUCE, data.produce((name, 0, records())), 9)
                assert not answer.responses[0].partition_responses[0].error_code
            for group in ("g", "h"):
                until_answered(
                    side, ApiKey.FIND_COORDINATOR, lookup.find_coordinator(4, group), 4, lambda a: a.coordinators
                )
                until_answered(
                    side,
                    ApiKey.OFFSET_COMMIT,
                    groups.offset_commit(group, ("t", 0, 1), ("u", 0, 1)),
                    9,
                    lambda a: [p for t in a.topics for p in t.partitions],
                )
            flow = topology(subtopology("0", "t", "u"))
            until_answered(
                side,
                ApiKey.STREAMS_GROUP_HEARTBEAT,
                streams_group_heartbeat("flow", "m", 0, topology=flow),
                0,
                lambda a: [a],
            )
            until_answered(
                side,
                ApiKey.FIND_COORDINATOR,
                lookup.find_coordinator(4, "x", key_type=1),
                4,
                lambda a: a.coordinators,
            )
            until_answered(side, ApiKey.INIT_PRODUCER_ID, transactions.init_producer_id("x"), 4, lambda a: [a])
        yield SideBySide(kafka, barnabas)


def until_answered(side, key, request, version, parts):
    """Apache Kafka's coordinators are not available at once, and nothing announces when they are."""
    while any(part.error_code for part in parts(side.ask(key, request, version))):
        pass


@pytest.mark.parametrize("name", CASES)
def test_each_right(brokers, name):
    case = CASES[name]
    place = list(CASES).index(name)
    found = []
    for number, rights in enumerate(case.rights()):
        for version in case.versions:
            try:
                brokers.play(lambda side, v=version, n=number: [ask(side, f"u{place}-{n}", case, v)])
            except AssertionError as difference:
                found.append(f"version {version}, with {', '.join(rights) or 'no right'}:\n{difference}")
    assert not found, "\n".join(found)


def ask(side, user, case, version):
    side.user = user
    try:
        return side.ask(case.key, case.request(side, version), version)
    finally:
        side.user = ADMIN


# --- rules themselves ---


def play(brokers, key, request, version=3):
    brokers.play(lambda side: [side.ask(key, request, version)])


READ = acls.rule("User:x", AclOperation.READ, ResourceType.TOPIC, "rule")

INVALID = {
    "no name": READ._replace(name=""),
    "another cluster": READ._replace(resource_type=ResourceType.CLUSTER),
    "any type": READ._replace(resource_type=ResourceType.ANY),
    "type 99": READ._replace(resource_type=99),
    "type 0": READ._replace(resource_type=0),
    "any pattern": READ._replace(pattern_type=PatternType.ANY),
    "pattern match": READ._replace(pattern_type=PatternType.MATCH),
    "pattern 99": READ._replace(pattern_type=99),
    "pattern 0": READ._replace(pattern_type=0),
    "any operation": READ._replace(operation=AclOperation.ANY),
    "operation 99": READ._replace(operation=99),
    "operation 0": READ._replace(operation=0),
    "any permission": READ._replace(permission=PermissionType.ANY),
    "permission 99": READ._replace(permission=99),
    "permission 0": READ._replace(permission=0),
    "a principal without a type": READ._replace(principal="x"),
    "an empty principal": READ._replace(principal=""),
}


@pytest.mark.parametrize("name", INVALID)
def test_a_rule_that_cannot_be_created(brokers, name):
    valid = READ._replace(name="beside")
    play(brokers, ApiKey.CREATE_ACLS, acls.create_acls(INVALID[name], valid))
    play(brokers, ApiKey.DELETE_ACLS, acls.delete_acls(acls.Rule(name="beside"), acls.Rule(name="rule")))


ODD = {
    "no principal's name": READ._replace(principal="User:"),
    "a type nobody has": READ._replace(principal="Group:x"),
    "no host": READ._replace(host=""),
    "a host's name": READ._replace(host="example.com"),
    "an operation that topics do not have": READ._replace(operation=AclOperation.CLUSTER_ACTION),
    "a name with a slash": READ._replace(resource_type=ResourceType.GROUP, name="a/b"),
    "a name that is not one": READ._replace(name="no name: ü"),
    "a user": READ._replace(resource_type=ResourceType.USER, name="User:y", operation=AclOperation.CREATE_TOKENS),
    "a token": READ._replace(resource_type=ResourceType.DELEGATION_TOKEN, name="z", operation=AclOperation.DESCRIBE),
    "a prefix of everything": READ._replace(name="*", pattern_type=PatternType.PREFIXED),
    "two-phase commit": READ._replace(
        resource_type=ResourceType.TRANSACTIONAL_ID, name="q", operation=AclOperation.TWO_PHASE_COMMIT
    ),
}


@pytest.mark.parametrize("name", ODD)
def test_an_odd_rule(brokers, name):
    rule = ODD[name]
    play(brokers, ApiKey.CREATE_ACLS, acls.create_acls(rule, rule))
    settled(brokers, rule, 1)
    play(brokers, ApiKey.DESCRIBE_ACLS, acls.describe_acls(rule))
    play(brokers, ApiKey.DELETE_ACLS, acls.delete_acls(rule, rule))
    settled(brokers, rule, 0)
    play(brokers, ApiKey.DELETE_ACLS, acls.delete_acls(rule))


def settled(brokers, chosen, count):
    """Apache Kafka answers before its rules are effective."""
    for side in (brokers.kafka, brokers.barnabas):
        while True:
            answer = side.ask(ApiKey.DESCRIBE_ACLS, acls.describe_acls(chosen), 3)
            if sum(len(each.acls) for each in answer.resources) == count:
                break


FILTERS = {
    "all of a topic": acls.Rule(ResourceType.TOPIC, "story-1", PatternType.MATCH),
    "of any kind of pattern": acls.Rule(ResourceType.TOPIC, "story-1", PatternType.ANY),
    "literal": acls.Rule(ResourceType.TOPIC, "story-1", PatternType.LITERAL),
    "prefixed": acls.Rule(ResourceType.TOPIC, "story-", PatternType.PREFIXED),
    "prefixed by another name": acls.Rule(ResourceType.TOPIC, "story-1", PatternType.PREFIXED),
    "matching the wildcard": acls.Rule(ResourceType.GROUP, "*", PatternType.MATCH, principal="User:story"),
    "of a principal": acls.Rule(principal="User:story"),
    "of a host": acls.Rule(host="10.0.0.1"),
    "denials": acls.Rule(permission=PermissionType.DENY, principal="User:story"),
    "of an operation": acls.Rule(operation=AclOperation.ALTER, principal="User:story"),
    "of a type": acls.Rule(ResourceType.TRANSACTIONAL_ID, principal="User:story"),
    "type 99": acls.Rule(99),
    "pattern 99": acls.Rule(pattern_type=99),
    "operation 99": acls.Rule(operation=99),
    "permission 99": acls.Rule(permission=99),
    "type 0": acls.Rule(0),
    "pattern 0": acls.Rule(pattern_type=0),
    "operation 0": acls.Rule(operation=0),
    "permission 0": acls.Rule(permission=0),
}


def test_filters(brokers):
    def rule(operation, resource_type, name, **fields):
        return acls.rule("User:story", operation, resource_type, name, **fields)

    rules = [
        rule(AclOperation.READ, ResourceType.TOPIC, "story-1"),
        rule(AclOperation.WRITE, ResourceType.TOPIC, "story-1", permission=PermissionType.DENY),
        rule(AclOperation.ALTER, ResourceType.TOPIC, "story-", pattern_type=PatternType.PREFIXED),
        rule(AclOperation.READ, ResourceType.GROUP, "*", host="10.0.0.1"),
        rule(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, "story", host="10.0.0.1"),
    ]
    everything = acls.Rule(principal="User:story")
    play(brokers, ApiKey.CREATE_ACLS, acls.create_acls(*rules))
    settled(brokers, everything, len(rules))
    for name, chosen in FILTERS.items():
        for version in (1, 2, 3):
            try:
                play(brokers, ApiKey.DESCRIBE_ACLS, acls.describe_acls(chosen), version)
            except AssertionError as difference:
                raise AssertionError(f"{name}, version {version}: {difference}") from None
    for name in ("type 99", "pattern 99", "operation 99", "permission 99", "type 0", "operation 0"):
        play(brokers, ApiKey.DELETE_ACLS, acls.delete_acls(FILTERS[name], FILTERS["literal"]))
        play(brokers, ApiKey.CREATE_ACLS, acls.create_acls(*rules))
        settled(brokers, everything, len(rules))
    play(brokers, ApiKey.DELETE_ACLS, acls.delete_acls(FILTERS["literal"], everything))
    settled(brokers, everything, 0)


def test_a_changed_rule_holds_at_once_for_open_connections(brokers):
    user = "u0-1"  # has no rights
    rule = acls.rule(f"User:{user}", AclOperation.DESCRIBE, ResourceType.TOPIC, "t")
    answers = []
    for wanted in (acls.create_acls(rule), acls.delete_acls(rule)):
        key = ApiKey.CREATE_ACLS if not answers else ApiKey.DELETE_ACLS
        side = brokers.barnabas
        side.ask(key, wanted, 3)
        side.user = user
        answers.append(side.ask(ApiKey.METADATA, lookup.metadata(["t"]), 12).topics[0].error_code)
        side.user = ADMIN
    assert answers == [0, 29]
