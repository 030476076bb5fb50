import pytest

from barnabas.protocol.api import ApiKey
from barnabas.protocol.decoder import decode, decoder
from barnabas.protocol.encoder import encode
from barnabas.protocol.errors import ProtocolError
from barnabas.protocol.headers import RequestHeader, ResponseHeader

METADATA_REQUEST = RequestHeader(
    request_api_key=ApiKey.METADATA, request_api_version=9, correlation_id=7, client_id="tea"
)


def test_a_plain_request_header() -> None:
    data = bytes.fromhex("0003 0009 00000007 0003") + b"tea"
    assert encode(METADATA_REQUEST, 1) == data
    assert decode(RequestHeader, 1, data) == METADATA_REQUEST


def test_a_flexible_request_header_ends_with_tags_but_its_client_id_stays_plain() -> None:
    data = bytes.fromhex("0003 0009 00000007 0003") + b"tea" + bytes.fromhex("00")
    assert encode(METADATA_REQUEST, 2) == data
    assert decode(RequestHeader, 2, data) == METADATA_REQUEST


@pytest.mark.parametrize(("version", "tags"), [(1, ""), (2, "00")])
def test_a_client_need_not_name_itself(version: int, tags: str) -> None:
    header = RequestHeader(request_api_key=ApiKey.METADATA, request_api_version=9, correlation_id=7)
    data = bytes.fromhex("0003 0009 00000007 ffff" + tags)
    assert encode(header, version) == data
    assert decode(RequestHeader, version, data).client_id is None


def test_unknown_tags_of_a_header_are_skipped() -> None:
    data = bytes.fromhex("0003 0009 00000007 ffff  02  00 01 aa  05 02 bbcc")
    assert decode(RequestHeader, 2, data).correlation_id == 7


def test_a_request_begins_where_its_header_ends() -> None:
    data = encode(METADATA_REQUEST, 2) + b"the request"
    _, position = decoder(RequestHeader, 2)(memoryview(data), 0)
    assert data[position:] == b"the request"


def test_response_headers() -> None:
    assert encode(ResponseHeader(correlation_id=7), 0) == bytes.fromhex("00000007")
    assert encode(ResponseHeader(correlation_id=7), 1) == bytes.fromhex("00000007 00")


@pytest.mark.parametrize("version", [1, 2])
def test_a_header_that_is_cut_short(version: int) -> None:
    data = encode(METADATA_REQUEST, version)
    for length in range(len(data)):
        with pytest.raises(ProtocolError):
            decode(RequestHeader, version, data[:length])
