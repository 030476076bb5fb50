import pytest

from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from tests.broker.server.harness import connected
from tests.support.running_broker import running


@pytest.mark.parametrize("version", range(5))
async def test_every_version_names_what_the_broker_serves(tmp_path, version):
    async with running(tmp_path) as broker, connected(broker.server) as client:
        request = ApiVersionsRequest(client_software_name="test", client_software_version="1.0")
        answer = await client.ask(ApiKey.API_VERSIONS, request, version)
        assert answer.error_code == ErrorCode.NONE
        rows = {row.api_key: (row.min_version, row.max_version) for row in answer.api_keys}
        assert rows.keys() == {key for key, api in broker.server.dispatcher.apis.items() if not api.between_brokers}
        assert rows[ApiKey.API_VERSIONS] == (0, 4)
        assert rows[ApiKey.METADATA] == (0, 13)


@pytest.mark.parametrize("version", range(5))
async def test_from_version_3_the_answer_has_the_features(tmp_path, version):
    """By these a client knows which protocols to use: for transactions, and for groups."""
    async with running(tmp_path) as broker, connected(broker.server) as client:
        request = ApiVersionsRequest(client_software_name="test", client_software_version="1.0")
        answer = await client.ask(ApiKey.API_VERSIONS, request, version)
        told = version >= 3
        # Java's clients of 3.4 to 3.7 ask in version 3, and cannot connect if the answer has a lowest level of 0.
        assert [(f.name, f.min_version, f.max_version) for f in answer.supported_features] == (
            [("group.version", 0, 1), ("share.version", 0, 1), ("streams.version", 0, 1), ("transaction.version", 0, 2)]
            * (version >= 4)
        )
        assert [(f.name, f.min_version_level, f.max_version_level) for f in answer.finalized_features] == (
            [("group.version", 1, 1), ("share.version", 1, 1), ("streams.version", 1, 1), ("transaction.version", 2, 2)]
            * told
        )
        assert answer.finalized_features_epoch == (0 if told else -1)


async def test_beside_kafka_3_9_transactions_are_those_of_before_kip_890(tmp_path):
    settings = {"inter_broker_protocol_version": "3.9"}
    async with running(tmp_path, **settings) as broker, connected(broker.server) as client:
        request = ApiVersionsRequest(client_software_name="test", client_software_version="1.0")
        answer = await client.ask(ApiKey.API_VERSIONS, request, 3)
        assert (answer.supported_features, answer.finalized_features) == ([], [])
        highest = {row.api_key: row.max_version for row in answer.api_keys}
        assert (highest[ApiKey.PRODUCE], highest[ApiKey.END_TXN], highest[ApiKey.TXN_OFFSET_COMMIT]) == (11, 4, 4)


async def test_produce_is_named_from_version_0_although_it_is_taken_from_3(tmp_path):
    """Older librdkafka decides by version 0 what a broker can do."""
    async with running(tmp_path) as broker, connected(broker.server) as client:
        answer = await client.ask(ApiKey.API_VERSIONS, ApiVersionsRequest(), 0)
        (produce,) = [row for row in answer.api_keys if row.api_key == ApiKey.PRODUCE]
        assert produce.min_version == 0
        assert 2 not in broker.server.dispatcher.apis[ApiKey.PRODUCE].served


@pytest.mark.parametrize("version", [3, 4])
@pytest.mark.parametrize(
    ("name", "software_version", "error"),
    [
        ("apache-kafka-java", "4.3.1", ErrorCode.NONE),
        ("a", "1", ErrorCode.NONE),
        ("", "1", ErrorCode.INVALID_REQUEST),
        ("a", "", ErrorCode.INVALID_REQUEST),
        ("a b", "1", ErrorCode.INVALID_REQUEST),
        ("-a", "1", ErrorCode.INVALID_REQUEST),
        ("a", "1.", ErrorCode.INVALID_REQUEST),
        ("ä", "1", ErrorCode.INVALID_REQUEST),
    ],
)
async def test_from_version_3_a_client_names_itself_properly(tmp_path, name, software_version, error, version):
    async with running(tmp_path) as broker, connected(broker.server) as client:
        request = ApiVersionsRequest(client_software_name=name, client_software_version=software_version)
        answer = await client.ask(ApiKey.API_VERSIONS, request, version)
        assert answer.error_code == error
        assert bool(answer.api_keys) == (error == ErrorCode.NONE)
        await client.ask(ApiKey.API_VERSIONS, ApiVersionsRequest(), 0)  # the connection stays
