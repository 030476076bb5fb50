"""CreateAcls, DescribeAcls and DeleteAcls. tests/integration/access/ has all that they refuse."""

import pytest

from barnabas.client.requests.acls import Rule, create_acls, delete_acls, describe_acls, rule
from barnabas.client.requests.lookup import metadata
from barnabas.protocol.acls import AclOperation, ResourceType
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from tests.broker.server.harness import connected
from tests.support.running_broker import create_topic, running

AUTHORIZER = {"authorizer_class_name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}
ANONYMOUS = "User:ANONYMOUS"  # a client without a name, as in these tests
READ = rule(ANONYMOUS, AclOperation.READ, ResourceType.TOPIC, "t")


@pytest.mark.parametrize("version", [1, 2, 3])
async def test_rules_are_created_and_deleted(tmp_path, version):
    async with (
        running(tmp_path, **AUTHORIZER, super_users=ANONYMOUS) as broker,
        connected(broker.server) as client,
    ):
        created = await client.ask(ApiKey.CREATE_ACLS, create_acls(READ, READ), version)
        assert [each.error_code for each in created.results] == [0, 0]
        (found,) = (await client.ask(ApiKey.DESCRIBE_ACLS, describe_acls(Rule(name="t")), version)).resources
        assert (found.resource_type, found.resource_name, found.pattern_type) == (2, "t", 3)
        (acl,) = found.acls
        assert (acl.principal, acl.host, acl.operation, acl.permission_type) == (ANONYMOUS, "*", 3, 3)
        deleted = await client.ask(ApiKey.DELETE_ACLS, delete_acls(Rule(name="u"), Rule()), version)
        assert [len(each.matching_acls) for each in deleted.filter_results] == [0, 1]
        assert (await client.ask(ApiKey.DESCRIBE_ACLS, describe_acls(Rule()), version)).resources == []


async def test_without_an_authorizer_there_are_no_rules(tmp_path):
    async with running(tmp_path) as broker, connected(broker.server) as client:
        created = await client.ask(ApiKey.CREATE_ACLS, create_acls(READ), 3)
        assert [each.error_code for each in created.results] == [ErrorCode.SECURITY_DISABLED]
        assert (await client.ask(ApiKey.DESCRIBE_ACLS, describe_acls(Rule()), 3)).error_code == 54
        deleted = await client.ask(ApiKey.DELETE_ACLS, delete_acls(Rule()), 3)
        assert [each.error_code for each in deleted.filter_results] == [ErrorCode.SECURITY_DISABLED]


async def test_rules_are_still_there_after_a_restart(tmp_path):
    async with running(tmp_path, **AUTHORIZER, super_users=ANONYMOUS) as broker, connected(broker.server) as client:
        await create_topic(broker, "t")
        await create_topic(broker, "u")
        await client.ask(ApiKey.CREATE_ACLS, create_acls(READ), 3)
    async with running(tmp_path, **AUTHORIZER) as broker, connected(broker.server) as client:
        assert (await client.ask(ApiKey.CREATE_ACLS, create_acls(READ), 3)).results[0].error_code == 31
        topics = (await client.ask(ApiKey.METADATA, metadata(None), 12)).topics
        assert [topic.name for topic in topics] == ["t"]
        named = (await client.ask(ApiKey.METADATA, metadata(["t", "u"]), 12)).topics
        assert [topic.error_code for topic in named] == [0, ErrorCode.TOPIC_AUTHORIZATION_FAILED]
