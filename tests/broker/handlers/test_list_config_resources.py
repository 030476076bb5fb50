import pytest

from barnabas.client.requests.admin import BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP, TOPIC, list_config_resources
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from tests.broker.server.harness import connected
from tests.support.running_broker import create_topic, running

EVERYTHING = {(TOPIC, "t"), (TOPIC, "u"), (BROKER, "7"), (BROKER_LOGGER, "7")}


@pytest.mark.parametrize(
    ("types", "listed"),
    [
        ([], EVERYTHING),
        ([TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP], EVERYTHING),
        ([TOPIC], {(TOPIC, "t"), (TOPIC, "u")}),
        ([BROKER, BROKER], {(BROKER, "7")}),
        ([CLIENT_METRICS, GROUP], set()),
    ],
)
async def test_resources_are_listed_by_type(tmp_path, types, listed):
    async with running(tmp_path, node_id=7) as broker, connected(broker.server) as client:
        await create_topic(broker, "t")
        await create_topic(broker, "u")
        answer = await client.ask(ApiKey.LIST_CONFIG_RESOURCES, list_config_resources(*types), 1)
        assert answer.error_code == ErrorCode.NONE
        found = [(resource.resource_type, resource.resource_name) for resource in answer.config_resources]
        assert set(found) == listed
        assert len(found) == len(listed)


async def test_version_0_lists_client_metrics_of_which_there_are_none(tmp_path):
    async with running(tmp_path) as broker, connected(broker.server) as client:
        answer = await client.ask(ApiKey.LIST_CONFIG_RESOURCES, list_config_resources(), 0)
        assert (answer.error_code, answer.config_resources) == (ErrorCode.NONE, [])


@pytest.mark.parametrize("types", [[0], [99], [TOPIC, 1]])
async def test_unknown_types(tmp_path, types):
    async with running(tmp_path) as broker, connected(broker.server) as client:
        answer = await client.ask(ApiKey.LIST_CONFIG_RESOURCES, list_config_resources(*types), 1)
        assert (answer.error_code, answer.config_resources) == (ErrorCode.UNSUPPORTED_VERSION, [])
