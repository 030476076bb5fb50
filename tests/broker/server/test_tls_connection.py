"""TLS as it goes over a real socket: handshakes that end well, badly and never, and data in both directions."""

import asyncio
import os
import socket
import ssl
from contextlib import suppress

import pytest
from structlog.testing import capture_logs

from barnabas.broker.config import BrokerConfig
from barnabas.broker.security.tls import Tls
from barnabas.broker.server.dispatch import Api
from barnabas.broker.server.server import Server
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from barnabas.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.protocol.messages.produce import ProduceRequest
from barnabas.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from barnabas.storage.filesystem import FileSystem
from barnabas.storage.open_files import Handle
from barnabas.storage.segment import FileSlice
from tests.broker.server.harness import Client, frame
from tests.support import certificates
from tests.support.compiled import replaces_a_method
from tests.support.manual_clock import ManualClock

HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
LARGE = 3_000_000


class Serving:
    """A server with one TLS listener, and clients of it."""

    def __init__(self, *apis, clock=None, **settings):
        self.loop = asyncio.get_running_loop()
        names = {name.replace("_", "."): str(value) for name, value in settings.items()}
        listening = {"listeners": "SSL://127.0.0.1:0", "security.inter.broker.protocol": "SSL"}
        self.config = BrokerConfig({**listening, **certificates.server_settings(), **names})
        self.clock = clock or ManualClock()
        self.server = Server(self.config, apis, self.clock, self.loop)

    async def __aenter__(self):
        self.server.bind()
        self.server.start()
        return self

    async def __aexit__(self, *error):
        await self.server.stop()

    @property
    def port(self):
        return self.server.listeners[0].port

    async def connect(self, issued=None, host="127.0.0.1", **versions):
        context = ssl.create_default_context(cadata=certificates.authority().certificate.decode())
        for name, value in versions.items():
            setattr(context, name, value)
        if issued is not None:
            with_files(context, issued)
        return Client(
            *await asyncio.open_connection("127.0.0.1", self.port, ssl=context, server_hostname=host, limit=2**26)
        )

    async def connect_in_plaintext(self):
        return Client(*await asyncio.open_connection("127.0.0.1", self.port))


def send_and_say_goodbye(port, data):
    """Send it with the closing alert, which is no end of the TCP connection, and wait for that of the other side."""
    context = ssl.create_default_context(cadata=certificates.authority().certificate.decode())
    with (
        socket.create_connection(("127.0.0.1", port)) as raw,
        context.wrap_socket(raw, server_hostname="127.0.0.1") as tls,
    ):
        tls.settimeout(20)
        tls.sendall(data)
        tls.unwrap()


def with_files(context, issued):
    descriptor = os.memfd_create("client")
    with os.fdopen(descriptor, "wb") as file:
        file.write(issued.key + issued.certificate)
        file.flush()
        context.load_cert_chain(f"/proc/self/fd/{descriptor}")


def answer_at_once(request, message):
    return HeartbeatResponse()


def echo(request, message):
    return SyncGroupResponse(assignment=message.member_id.encode())


AT_ONCE = Api(ApiKey.HEARTBEAT, answer_at_once)
ECHO = Api(ApiKey.SYNC_GROUP, echo)


def sync_group(text):
    return SyncGroupRequest(group_id="g", generation_id=1, member_id=text, assignments=[])


@pytest.mark.parametrize("version", ["TLSv1_2", "TLSv1_3"])
async def test_requests_are_answered_in_each_version(version):
    async with Serving(AT_ONCE, ECHO) as serving:
        wanted = getattr(ssl.TLSVersion, version)
        client = await serving.connect(minimum_version=wanted, maximum_version=wanted)
        assert client.writer.get_extra_info("ssl_object").version() == version.replace("_", ".")
        client.send(b"".join(frame(ApiKey.HEARTBEAT, HEARTBEAT, correlation_id=n) for n in range(500)))
        assert [(await client.answer(ApiKey.HEARTBEAT))[0] for _ in range(500)] == list(range(500))
        client.close()


async def test_large_frames_go_in_both_directions():
    async with Serving(ECHO) as serving:
        client = await serving.connect()
        for size in (1, 16_383, 16_384, 16_385, 32_768 - 40, 32_768, 32_767, 30_000, 65_536):
            text = "x" * min(size, 32_767)
            assert len((await client.ask(ApiKey.SYNC_GROUP, sync_group(text))).assignment) == len(text)
        many = b"".join(frame(ApiKey.SYNC_GROUP, sync_group("y" * 32_000), correlation_id=n) for n in range(100))
        client.send(many)
        for n in range(100):
            correlation_id, answer = await client.answer(ApiKey.SYNC_GROUP)
            assert (correlation_id, len(answer.assignment)) == (n, 32_000)
        client.close()


async def test_a_request_that_comes_byte_by_byte_is_answered():
    async with Serving(ECHO) as serving:
        client = await serving.connect()
        for byte in frame(ApiKey.SYNC_GROUP, sync_group("slow")):
            client.send(bytes([byte]))
            await client.writer.drain()
        assert (await client.answer(ApiKey.SYNC_GROUP))[1].assignment == b"slow"
        client.close()


async def test_records_are_read_from_their_file_and_encrypted(tmp_path):
    data = os.urandom(LARGE)
    (tmp_path / "segment").write_bytes(data)
    handle = Handle(FileSystem(), str(tmp_path / "segment"))

    def fetch(request, message):
        records = FileSlice(handle, 100, LARGE - 100)
        partition = PartitionData(partition_index=0, high_watermark=1, records=records)
        return FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[partition, partition])])

    async with Serving(Api(ApiKey.FETCH, fetch)) as serving:
        client = await serving.connect()
        for _ in range(3):
            answer = await client.ask(ApiKey.FETCH, FetchRequest(max_wait_ms=0, min_bytes=0, topics=[]), 4)
            for partition in answer.responses[0].partitions:
                assert bytes(partition.records) == data[100:]
        client.close()


async def test_no_more_is_encrypted_than_the_client_takes():
    """A long answer goes in many parts, all but the last of which say that more is to come."""
    async with Serving(AT_ONCE) as serving:
        client = await serving.connect()
        await client.ask(ApiKey.HEARTBEAT, HEARTBEAT)
        client.reader._transport.pause_reading()
        (connection,) = serving.server.connections
        connection._out.extend(memoryview(bytes(1_000_000)) for _ in range(60))
        for _ in range(60):
            connection.send()
            assert connection._tls._outgoing.pending + len(connection._tls._unsent) < 3_000_000
        assert len(connection._out) > 10  # it waits for the client
        client.close()


async def test_an_idle_connection_holds_no_buffer():
    async with Serving(AT_ONCE) as serving:
        client = await serving.connect()
        await client.ask(ApiKey.HEARTBEAT, HEARTBEAT)
        (connection,) = serving.server.connections
        assert len(connection._buffer) == 0
        client.close()


# --- certificates of clients ---


async def test_the_certificate_of_a_client_is_its_name():
    seen = []

    def remember(request, message):
        seen.append(str(request.connection.principal))
        return HeartbeatResponse()

    rules = "RULE:^CN=(.*?),OU=people.*$/$1/U,DEFAULT"
    settings = {"ssl_client_auth": "required", "ssl_principal_mapping_rules": rules}
    async with Serving(Api(ApiKey.HEARTBEAT, remember), **settings) as serving:
        for issued in (certificates.client(), certificates.client("robot", "machines")):
            client = await serving.connect(issued)
            await client.ask(ApiKey.HEARTBEAT, HEARTBEAT)
            client.close()
    assert seen == ["User:ALICE", "User:CN=robot,OU=machines,O=Barnabas development"]


@pytest.mark.parametrize("wanted", ["none", "requested"])
async def test_a_client_without_certificate_is_anonymous(wanted):
    async with Serving(AT_ONCE, ssl_client_auth=wanted) as serving:
        client = await serving.connect()
        await client.ask(ApiKey.HEARTBEAT, HEARTBEAT)
        (connection,) = serving.server.connections
        assert str(connection.principal) == "User:ANONYMOUS"
        client.close()


@pytest.mark.parametrize(
    ("issued", "wanted", "reason"),
    [
        (None, "required", "TLS failed: peer did not return a certificate"),
        ("stranger", "required", "the certificate is not accepted: unable to get local issuer certificate"),
        ("stranger", "requested", "the certificate is not accepted: unable to get local issuer certificate"),
        ("expired", "required", "the certificate is not accepted: certificate has expired"),
        ("server", "required", None),
    ],
)
async def test_a_client_needs_a_valid_certificate(issued, wanted, reason):
    found = {
        None: None,
        "stranger": certificates.stranger(),
        "expired": certificates.authority().issue("old", days=1, since_days=3),
        "server": certificates.server(),
    }[issued]
    with capture_logs() as logs:
        async with Serving(AT_ONCE, ssl_client_auth=wanted) as serving:
            client = await serving.connect(found)
            if reason is None:
                await client.ask(ApiKey.HEARTBEAT, HEARTBEAT)
                client.close()
                return
            with pytest.raises((ssl.SSLError, ConnectionError, asyncio.IncompleteReadError)):
                await client.ask(ApiKey.HEARTBEAT, HEARTBEAT)
    assert [line["reason"] for line in logs] == [reason]


async def test_a_client_whose_name_matches_no_rule_is_refused():
    settings = {"ssl_client_auth": "required", "ssl_principal_mapping_rules": "RULE:^CN=(bob),.*$/$1/"}
    with capture_logs() as logs:
        async with Serving(AT_ONCE, **settings) as serving:
            client = await serving.connect(certificates.client())
            assert await client.closed()
    (line,) = logs
    assert line["reason"].startswith("no rule of ssl.principal.mapping.rules matches CN=alice,OU=people")


# --- those who speak something else ---


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (frame(ApiKey.HEARTBEAT, HEARTBEAT), "it does not speak TLS, and this listener does"),
        (b"GET / HTTP/1.1\r\n\r\n", "it does not speak TLS, and this listener does (it looks like HTTP)"),
        (b"\x16\x03\x01\x00\x05hello", "TLS failed: unexpected message"),
        (b"\x16\x03\x01\xff\xff" + bytes(20_000), "TLS failed: packet length too long"),
    ],
    ids=["kafka", "http", "damaged", "oversized"],
)
async def test_what_is_not_a_handshake_is_closed_with_one_line(sent, reason):
    with capture_logs() as logs:
        async with Serving(AT_ONCE) as serving:
            client = await serving.connect_in_plaintext()
            client.send(sent)
            with suppress(ConnectionResetError):
                await client.reader.read()
            assert not serving.server.connections
            assert serving.server.failed_authentications == {("SSL", "TLS"): 1}
    assert [line["reason"] for line in logs] == [reason]


async def test_a_plaintext_client_gets_no_answer_that_it_would_misread():
    async with Serving(AT_ONCE) as serving:
        client = await serving.connect_in_plaintext()
        client.send(frame(ApiKey.HEARTBEAT, HEARTBEAT))
        assert await client.closed()


async def test_half_a_handshake_affects_nobody_and_is_ended():
    clock = ManualClock()
    with capture_logs() as logs:
        async with Serving(AT_ONCE, clock=clock) as serving:
            silent = await serving.connect_in_plaintext()
            half = await serving.connect_in_plaintext()
            half.send(b"\x16\x03\x01\x02\x00\x01\x00")
            client = await serving.connect()
            await client.ask(ApiKey.HEARTBEAT, HEARTBEAT)
            assert [connection._tls is None for connection in serving.server.connections] == [True, True, False]
            clock.advance(31)
            assert await half.closed()
            assert len(serving.server.connections) == 2  # a silent client is only idle
            silent.close()
            await client.ask(ApiKey.HEARTBEAT, HEARTBEAT)
            client.close()
    assert [line["reason"] for line in logs] == ["its TLS handshake took too long"]


async def test_hundreds_of_half_open_handshakes_do_not_affect_others():
    hello = b"\x16\x03\x01\x02\x00\x01\x00"
    async with Serving(AT_ONCE) as serving:
        half_open = [await serving.connect_in_plaintext() for _ in range(400)]
        for each in half_open:
            each.send(hello)
        client = await serving.connect()
        await client.ask(ApiKey.HEARTBEAT, HEARTBEAT)
        waiting = [connection for connection in serving.server.connections if connection._tls is None]
        assert len(waiting) == len(half_open)
        assert all(len(connection._buffer) == 0 for connection in waiting)
        for each in (*half_open, client):
            each.close()


async def test_a_handshake_may_arrive_byte_by_byte():
    async with Serving(AT_ONCE) as serving:
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        context = ssl.create_default_context(cadata=certificates.authority().certificate.decode())
        tls = context.wrap_bio(incoming, outgoing, server_hostname="localhost")
        client = await serving.connect_in_plaintext()
        while True:
            try:
                tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                for byte in outgoing.read():
                    client.send(bytes([byte]))
                    await client.writer.drain()
                    await asyncio.sleep(0)
                incoming.write(await client.reader.read(100))
        tls.write(frame(ApiKey.HEARTBEAT, HEARTBEAT))
        client.send(outgoing.read())
        incoming.write(await client.reader.read(1000))
        assert tls.read(100)
        client.close()


@replaces_a_method
async def test_a_handshake_that_fails_unexpectedly_does_not_affect_others(monkeypatch):
    def fail(self, connection):
        raise RuntimeError("out of luck")

    with capture_logs() as logs:
        async with Serving(AT_ONCE, ssl_client_auth="requested") as serving:
            with monkeypatch.context() as patch:
                patch.setattr(Tls, "principal_of", fail)
                unlucky = await serving.connect()
                assert await unlucky.closed()
            client = await serving.connect()
            await client.ask(ApiKey.HEARTBEAT, HEARTBEAT)
            client.close()
    assert [line["event"] for line in logs] == ["a TLS handshake failed", "connection closed"]


async def test_what_a_client_sent_before_it_said_goodbye_is_carried_out():
    handled = []

    def silent(request, message):
        handled.append(request.correlation_id)
        request.drop_answer()

    async with Serving(Api(ApiKey.PRODUCE, silent)) as serving:
        message = ProduceRequest(acks=0, timeout_ms=1, topic_data=[])
        sent = b"".join(frame(ApiKey.PRODUCE, message, 9, number) for number in range(200))
        await asyncio.to_thread(send_and_say_goodbye, serving.port, sent)
    assert handled == list(range(200))


@replaces_a_method
async def test_a_client_that_closes_without_an_alert_is_not_a_failure():
    with capture_logs() as logs:
        async with Serving(AT_ONCE) as serving:
            client = await serving.connect()
            await client.ask(ApiKey.HEARTBEAT, HEARTBEAT)
            (connection,) = serving.server.connections
            closed = asyncio.Event()
            serving.server.forget = lambda _: closed.set()
            connection._raw.shutdown(socket.SHUT_RD)
            await closed.wait()
            client.close()
    assert logs == []
