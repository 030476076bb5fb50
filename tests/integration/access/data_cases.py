"""Cases of topics and records: Produce, Fetch, offsets, Metadata, and finding coordinators."""

from barnabas.client.requests import admin, data, lookup
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.describe_cluster import DescribeClusterRequest
from tests.integration.access.case import UNKNOWN_ID, Case, fetch, operations, produce, records, transactional

CASES: dict[str, Case] = {
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
}
