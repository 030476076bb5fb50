"""Cases of administration: topics, settings, replicas, users, quotas, rules and tokens."""

from barnabas.client.requests import acls, admin, tokens, users
from barnabas.protocol.acls import AclOperation, ResourceType
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    OpData,
    RequestEntityData,
    RequestEntryData,
)
from barnabas.protocol.messages.describe_client_quotas import DescribeClientQuotasRequest
from tests.integration.access.case import BROKER, GROUP, TOPIC, UNKNOWN_ID, Case

CASES: dict[str, Case] = {
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
