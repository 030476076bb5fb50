import pytest

from barnabas.protocol.api import ApiKey, request_header_version, request_type, response_header_version, response_type
from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from barnabas.protocol.messages.produce import ProduceRequest, ProduceResponse


def test_a_key_names_its_messages() -> None:
    assert request_type(ApiKey.PRODUCE) is ProduceRequest
    assert response_type(ApiKey.PRODUCE) is ProduceResponse


@pytest.mark.parametrize("key", ApiKey)
def test_every_key_has_a_request_and_a_response_in_the_same_versions(key: ApiKey) -> None:
    request, response = request_type(key), response_type(key)
    assert request.__name__ == f"{key.api_name}Request"
    assert response.__name__ == f"{key.api_name}Response"
    assert request.versions == response.versions
    for version in request.versions:
        assert (version in request.flexible) == (version in response.flexible)


def test_a_key_has_kafkas_own_name() -> None:
    assert ApiKey.INIT_PRODUCER_ID.api_name == "InitProducerId"


@pytest.mark.parametrize(
    ("key", "version", "request_header", "response_header"),
    [
        (ApiKey.PRODUCE, 8, 1, 0),
        (ApiKey.PRODUCE, 9, 2, 1),
        (ApiKey.FETCH, 11, 1, 0),
        (ApiKey.FETCH, 12, 2, 1),
        (ApiKey.SASL_HANDSHAKE, 1, 1, 0),  # never became flexible
        (ApiKey.CONSUMER_GROUP_HEARTBEAT, 0, 2, 1),  # always was
    ],
)
def test_flexible_versions_have_the_headers_with_tags(
    key: ApiKey, version: int, request_header: int, response_header: int
) -> None:
    assert request_header_version(key, version) == request_header
    assert response_header_version(key, version) == response_header


def test_an_answer_to_api_versions_has_the_plain_header_in_every_version() -> None:
    """The client does not know yet which versions the broker speaks. Its request header is flexible nevertheless."""
    assert [response_header_version(ApiKey.API_VERSIONS, v) for v in ApiVersionsRequest.versions] == [0, 0, 0, 0, 0]
    assert [request_header_version(ApiKey.API_VERSIONS, v) for v in ApiVersionsRequest.versions] == [1, 1, 1, 2, 2]
