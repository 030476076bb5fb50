"""One connection: the versions that both sides speak, and every way in which a broker can fail to answer."""

import socket
import threading

import pytest

from barnabas.client.connection import Address, Connection, parse_address
from barnabas.client.errors import ConnectionLost, NotSupported, TimedOut, Unreachable
from barnabas.protocol.api import ApiKey
from barnabas.protocol.encoder import encode
from barnabas.protocol.frames import framed
from barnabas.protocol.messages.api_versions import ApiVersionsResponse
from barnabas.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataResponse
from tests.support.ports import HeldPort
from tests.support.scripted_broker import ScriptedBroker


def connect(broker, timeout=20.0):
    return Connection(Address("127.0.0.1", broker.port), "test", timeout)


@pytest.fixture
def raw_broker():
    """A listener that answers with these bytes once it has received something."""
    listeners = []

    def start(answer):
        listener = socket.create_server(("127.0.0.1", 0))
        listeners.append(listener)

        def serve():
            connection, _ = listener.accept()
            connection.recv(65536)
            if answer is not None:
                connection.sendall(answer)
                connection.close()
            else:
                listeners.append(connection)

        threading.Thread(target=serve, daemon=True).start()
        return Address("127.0.0.1", listener.getsockname()[1])

    yield start
    for each in listeners:
        each.close()


def test_the_highest_version_that_both_speak_is_used():
    with ScriptedBroker(versions={ApiKey.METADATA: (4, 7)}) as broker:
        connection = connect(broker)
        connection.ask(MetadataRequest(topics=[]), MetadataResponse)
        assert [(key, version) for key, version, _ in broker.asked] == [(ApiKey.API_VERSIONS, 4), (ApiKey.METADATA, 7)]
        connection.close()


def test_an_older_broker_is_asked_again_in_a_version_that_it_knows():
    with ScriptedBroker(versions={ApiKey.API_VERSIONS: (0, 2)}) as broker:
        connection = connect(broker)
        assert [version for _, version, _ in broker.asked] == [4, 2]
        assert connection.version(ApiKey.METADATA) == MetadataRequest.versions.highest
        connection.close()


def test_a_newer_broker_is_asked_in_the_newest_version_known_here():
    with ScriptedBroker(versions={ApiKey.METADATA: (0, 99)}) as broker:
        connection = connect(broker)
        assert connection.version(ApiKey.METADATA) == MetadataRequest.versions.highest
        connection.close()


def test_what_the_broker_does_not_serve_is_named():
    with ScriptedBroker(versions={ApiKey.LIST_GROUPS: (50, 60)}) as broker:
        connection = connect(broker)
        with pytest.raises(
            NotSupported, match=f"{broker.bootstrap} speaks versions 50 to 60 of ListGroups, this command speaks 0 to 5"
        ):
            connection.ask(ListGroupsRequest(), ListGroupsResponse)
        with pytest.raises(NotSupported, match="does not serve Produce"):
            connection.version(ApiKey.PRODUCE)
        assert not connection.serves(ApiKey.PRODUCE)
        connection.close()


def test_answers_come_in_the_order_of_the_requests():
    with ScriptedBroker() as broker:
        connection = connect(broker)
        connection.send(MetadataRequest(topics=None))
        connection.send(MetadataRequest(topics=[]))
        assert len(connection.receive(MetadataResponse).topics) == 1
        assert len(connection.receive(MetadataResponse).topics) == 0
        connection.close()


def test_nothing_listens():
    held = HeldPort()
    address = Address("127.0.0.1", held.number)
    with pytest.raises(Unreachable, match=f"cannot connect to {address}: Connection refused"):
        Connection(address, "test", 20)


def test_a_host_that_does_not_exist():
    with pytest.raises(Unreachable, match=r"cannot connect to no-such-host\.invalid:9092: "):
        Connection(Address("no-such-host.invalid", 9092), "test", 20)


def test_a_broker_that_says_nothing(raw_broker):
    address = raw_broker(None)
    with pytest.raises(TimedOut, match=f"the broker at {address} did not answer within 0.01 s"):
        Connection(address, "test", 0.01)


def test_a_broker_that_hangs_up(raw_broker):
    address = raw_broker(b"")
    with pytest.raises(ConnectionLost, match=str(address)):
        Connection(address, "test", 20)


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",  # as a length, the first four bytes are over a gigabyte
        b"\xff\xff\xff\xff",
        b"\x00\x00\x00\x02ab",
    ],
)
def test_a_peer_that_does_not_speak_the_protocol(raw_broker, answer):
    with pytest.raises(ConnectionLost, match="does not speak Kafka's protocol"):
        Connection(raw_broker(answer), "test", 20)


@pytest.mark.parametrize(
    "answer",
    [
        b"\x00\x00\x00\x0c" + b"\x00\x00\x00\x01" + b"\x00\x00" + b"\x7f\xff\xff\xff" + b"xx",  # too many keys
        framed(b"\x00\x00\x00\x07" + encode(ApiVersionsResponse(api_keys=[]), 4)),  # the answer to another request
    ],
)
def test_an_answer_that_makes_no_sense(raw_broker, answer):
    with pytest.raises(ConnectionLost, match="makes no sense"):
        Connection(raw_broker(answer), "test", 20)


def test_a_connection_closes_itself_when_it_fails():
    with ScriptedBroker({ApiKey.LIST_GROUPS: lambda request: None}) as broker:
        connection = connect(broker)
        with pytest.raises(ConnectionLost, match="closed the connection"):
            connection.ask(ListGroupsRequest(), ListGroupsResponse)
        assert connection.closed


def test_addresses():
    assert parse_address("[::1]:9092") == Address("::1", 9092)
    assert str(Address("::1", 9092)) == "[::1]:9092"
    assert str(parse_address("localhost:9093")) == "localhost:9093"


def test_the_port_may_be_left_out():
    assert parse_address("localhost") == Address("localhost", 9092)
    assert parse_address("[::1]") == Address("::1", 9092)


@pytest.mark.parametrize("text", ["", " ", "localhost:", ":9092", "a:b", "a:0", "a:65536", "a b", "[::1", "http://a"])
def test_what_is_not_an_address_is_refused(text):
    with pytest.raises(ValueError, match="not of the form HOST or HOST:PORT"):
        parse_address(text)


def test_an_ipv6_address_without_brackets_is_refused_because_its_port_is_ambiguous():
    with pytest.raises(ValueError, match="in brackets"):
        parse_address("::1:9092")
