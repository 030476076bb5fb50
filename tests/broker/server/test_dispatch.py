"""From a frame to its handler and back: the table, odd headers, and handlers of each kind."""

import asyncio
import itertools
import struct

import pytest
from structlog.testing import capture_logs

from barnabas.broker.server import dispatch, freeing, pieces
from barnabas.broker.server.dispatch import SMALL_FRAME, Api, Dispatcher, Route
from barnabas.protocol.api import ApiKey, request_type
from barnabas.protocol.codegen import ELEMENTS_PER_PIECE, least_size
from barnabas.protocol.decoder import MOST_ELEMENTS, decode
from barnabas.protocol.encoder import encode, encoder
from barnabas.protocol.frames import framed
from barnabas.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.protocol.messages.describe_groups import DescribedGroup, DescribeGroupsRequest, DescribeGroupsResponse
from barnabas.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from barnabas.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.protocol.schema import Versions
from tests.broker.server.harness import connected, frame, serving

HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
AT_ONCE = Api(ApiKey.HEARTBEAT, lambda request, message: HeartbeatResponse())
API_VERSIONS = Api(ApiKey.API_VERSIONS, lambda request, message: ApiVersionsResponse(api_keys=[]))


def served_versions(api):
    return (api.advertised.api_key, api.advertised.min_version, api.advertised.max_version)


def test_an_api_is_served_and_advertised_in_every_version_that_is_declared():
    assert AT_ONCE.served == request_type(ApiKey.HEARTBEAT).versions
    assert served_versions(AT_ONCE) == (12, 0, 4)


def test_an_api_may_be_served_in_fewer_versions():
    api = Api(ApiKey.HEARTBEAT, AT_ONCE.handle, versions=Versions(1, 3))
    assert served_versions(api) == (12, 1, 3)


async def test_an_api_may_be_advertised_from_a_version_that_is_not_served():
    api = Api(ApiKey.HEARTBEAT, AT_ONCE.handle, versions=Versions(2, 4), advertised_from=0)
    assert served_versions(api) == (12, 0, 4)
    async with serving(api) as server:
        async with connected(server) as client:
            await client.ask(ApiKey.HEARTBEAT, HEARTBEAT, version=2)
        async with connected(server) as client:
            client.send(frame(ApiKey.HEARTBEAT, HEARTBEAT, version=1))
            assert await client.closed()


def test_a_route_is_made_once():
    dispatcher = Dispatcher([AT_ONCE])
    assert dispatcher._new_route(12, 3) is dispatcher._new_route(12, 3)


@pytest.mark.parametrize("version", range(5))
async def test_a_handler_gets_the_message_and_knows_its_request(version):
    seen = []

    def look(request, message):
        seen.append((request.api_key, request.version, request.client_id, request.correlation_id, message.member_id))
        return HeartbeatResponse()

    async with serving(Api(ApiKey.HEARTBEAT, look)) as server, connected(server) as client:
        await client.ask(ApiKey.HEARTBEAT, HEARTBEAT, version=version, correlation_id=77)
    assert seen == [(ApiKey.HEARTBEAT, version, "test", 77, "m")]


async def test_a_client_id_may_be_missing_or_change_within_a_connection():
    seen = []

    def look(request, message):
        seen.append(request.client_id)
        return HeartbeatResponse()

    names = ["a", "a", None, "", "ä", "a"]
    async with serving(Api(ApiKey.HEARTBEAT, look)) as server, connected(server) as client:
        for name in names:
            client.send(frame(ApiKey.HEARTBEAT, HEARTBEAT, client_id=name))
            await client.answer(ApiKey.HEARTBEAT)
    assert seen == names


async def test_tags_in_a_header_are_skipped():
    plain = frame(ApiKey.HEARTBEAT, HEARTBEAT, version=4)
    header_size = 4 + 10 + len("test")
    tags = b"\x02" + b"\x00\x03abc" + b"\x85\x01\x00"  # two of them, of three bytes and of none
    body = plain[4:header_size] + tags + plain[header_size + 1 :]
    async with serving(AT_ONCE) as server, connected(server) as client:
        client.send(framed(body))
        assert (await client.answer(ApiKey.HEARTBEAT, 4))[0] == 1


@pytest.mark.parametrize(
    "tags", [b"", b"\x80", b"\x01", b"\x01\x00\x7f", b"\x01\x00\xff\xff\xff\xff\x0f", b"\xff\xff\xff\xff\xff\xff"]
)
async def test_tags_in_a_header_that_are_cut_short_end_the_connection(tags):
    body = struct.pack(">hhih", ApiKey.HEARTBEAT, 4, 1, -1) + tags
    async with serving(AT_ONCE) as server, connected(server) as client:
        with capture_logs() as logs:
            client.send(framed(body))
            assert await client.closed()
    assert [entry["event"] for entry in logs] == ["connection closed"]


async def test_a_client_id_that_is_cut_short_after_a_whole_one_ends_the_connection():
    """The id that is there is the one that this connection is known by, so a look at its bytes alone is not enough."""
    async with serving(API_VERSIONS) as server, connected(server) as client:
        await client.ask(ApiKey.API_VERSIONS, ApiVersionsRequest())
        body = struct.pack(">hhih", ApiKey.API_VERSIONS, 0, 1, 500) + b"test"
        client.send(framed(body))
        assert await client.closed()


@pytest.mark.parametrize("version", [-1, 5, 99, 32767])
async def test_a_version_of_api_versions_that_is_not_served_is_answered_in_version_0s_form(version):
    async with serving(API_VERSIONS, AT_ONCE) as server, connected(server) as client:
        body = struct.pack(">hhih", ApiKey.API_VERSIONS, version, 9, -1) + b"\0who knows what"
        client.send(framed(body))
        correlation_id, answer = await client.answer(ApiKey.API_VERSIONS, 0)
        assert correlation_id == 9
        assert answer.error_code == 35  # UNSUPPORTED_VERSION
        assert [(row.api_key, row.min_version, row.max_version) for row in answer.api_keys] == [(18, 0, 4)]
        await client.ask(ApiKey.API_VERSIONS, ApiVersionsRequest(), version=0)


async def test_a_handler_may_answer_later():
    parked = asyncio.Queue()
    api = Api(ApiKey.HEARTBEAT, lambda request, message: parked.put_nowait(request))
    async with serving(api) as server, connected(server) as client:
        client.send(frame(ApiKey.HEARTBEAT, HEARTBEAT))
        (await parked.get()).answer(HeartbeatResponse(error_code=27))
        assert (await client.answer(ApiKey.HEARTBEAT))[1].error_code == 27


async def test_a_handler_may_answer_by_a_coroutine_if_it_has_to_wait():
    async def slowly():
        await asyncio.sleep(0)
        return HeartbeatResponse(error_code=27)

    def look(request, message):
        return HeartbeatResponse() if message.generation_id == 1 else slowly()

    async with serving(Api(ApiKey.HEARTBEAT, look)) as server, connected(server) as client:
        for generation_id, error_code in ((1, 0), (2, 27), (1, 0)):
            message = HeartbeatRequest(group_id="g", generation_id=generation_id, member_id="m")
            assert (await client.ask(ApiKey.HEARTBEAT, message)).error_code == error_code


async def test_a_coroutine_may_leave_the_answer_to_somebody_else():
    parked = asyncio.Queue()

    async def park(request, message):
        parked.put_nowait(request)

    async with serving(Api(ApiKey.HEARTBEAT, park)) as server, connected(server) as client:
        client.send(frame(ApiKey.HEARTBEAT, HEARTBEAT))
        request = await parked.get()
        request.answer(HeartbeatResponse(error_code=27))
        assert (await client.answer(ApiKey.HEARTBEAT))[1].error_code == 27


async def test_a_failing_coroutine_costs_its_client_the_connection():
    async def broken(request, message):
        raise RuntimeError("a bug")

    async with serving(Api(ApiKey.HEARTBEAT, broken)) as server, connected(server) as client:
        with capture_logs() as logs:
            client.send(frame(ApiKey.HEARTBEAT, HEARTBEAT))
            assert await client.closed()
    assert [entry["event"] for entry in logs] == ["request failed", "connection closed"]
    assert (logs[0]["api"], logs[0]["version"], logs[0]["exc_info"]) == ("Heartbeat", 0, True)


class Slice:
    """Stands for records in a file."""

    def __init__(self, size):
        self.size = size


@pytest.mark.parametrize("version", [4, 12])
def test_records_that_lie_in_files_are_parts_of_their_own_between_the_bytes_around_them(version):
    slices = [Slice(5), Slice(7)]
    partitions = [PartitionData(partition_index=n, high_watermark=1, records=part) for n, part in enumerate(slices)]
    message = FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=partitions)])
    parts = Route(Api(ApiKey.FETCH, lambda request, message: None), version).encode(3, message)
    assert [part for part in parts if isinstance(part, Slice)] == slices
    whole = b"".join(b"x" * part.size if isinstance(part, Slice) else bytes(part) for part in parts)
    size, correlation_id = struct.unpack_from(">ii", whole)
    assert (size, correlation_id) == (len(whole) - 4, 3)
    read = decode(FetchResponse, version, whole[9 if version == 12 else 8 :])
    assert [bytes(partition.records) for partition in read.responses[0].partitions] == [b"x" * 5, b"x" * 7]


# --- codecs ---


async def count_turns():
    turns = itertools.count()
    loop = asyncio.get_running_loop()
    now = 0

    def count():
        nonlocal now
        now = next(turns)
        loop.call_soon(count)

    count()
    return lambda: now


async def test_each_codec_of_a_version_is_made_in_a_turn_of_its_own(monkeypatch):
    """They take milliseconds each, and the first request of a version needs them."""
    made, turn = [], await count_turns()
    monkeypatch.setattr(pieces, "perf_counter", itertools.count(0.0).__next__)  # every step takes longer than a piece
    for name in ("decoder", "encoder"):
        make = getattr(dispatch, name)
        monkeypatch.setattr(dispatch, name, lambda *of, make=make: made.append(turn()) or make(*of))
    async with serving(AT_ONCE) as server, connected(server) as client:
        await client.ask(ApiKey.HEARTBEAT, HEARTBEAT, version=2)
        asked = len(made)
        await client.ask(ApiKey.HEARTBEAT, HEARTBEAT, version=2)
    decoder_made, encoder_made, *found_again = made
    assert decoder_made < encoder_made
    assert len(found_again) == 2  # by the route
    assert asked == len(made)


def test_the_codecs_of_long_messages_are_made_in_a_step_of_their_own():
    route = Route(Api(ApiKey.DESCRIBE_GROUPS, described), 5)
    body = memoryview(encode(DescribeGroupsRequest(groups=["g"]), 5))
    answer = DescribeGroupsResponse(groups=[])
    for steps in (1, 0):
        assert len(list(route.decode_in_pieces(body, 0, from_broker=False))) == steps
        assert len(list(route.encode_in_pieces(1, answer, []))) == steps


async def test_requests_of_several_new_versions_are_answered_in_their_order(monkeypatch):
    monkeypatch.setattr(pieces, "perf_counter", itertools.count(0.0).__next__)
    async with serving(AT_ONCE, API_VERSIONS) as server, connected(server) as client:
        requests = [frame(ApiKey.HEARTBEAT, HEARTBEAT, version, correlation_id=version) for version in (3, 1, 3, 0, 2)]
        client.send(b"".join(requests))
        answers = [await client.answer(ApiKey.HEARTBEAT, version) for version in (3, 1, 3, 0, 2)]
    assert [correlation_id for correlation_id, _ in answers] == [3, 1, 3, 0, 2]


async def test_a_client_that_goes_before_its_codecs_are_made_is_not_served(monkeypatch):
    handled, encoding = [], asyncio.Event()
    monkeypatch.setattr(pieces, "perf_counter", itertools.count(0.0).__next__)
    async with serving(Api(ApiKey.HEARTBEAT, lambda *request: handled.append(request))) as server:
        async with connected(server) as client:

            def make(message, version):
                (connection,) = server.connections
                connection.close()
                encoding.set()
                return encoder(message, version)

            monkeypatch.setattr(dispatch, "encoder", make)
            client.send(frame(ApiKey.HEARTBEAT, HEARTBEAT))
            await encoding.wait()
            assert await client.closed()
    assert handled == []
    assert not server.dispatcher.pieces.are_under_way


# --- in pieces ---

MANY = 5000  # elements, which are more than one piece
DESCRIBE = DescribeGroupsRequest(groups=[f"group-{number}" for number in range(MANY)])


def described(request, message):
    """A handler that is a generator."""
    groups = []
    for group in message.groups:
        groups.append(described_group(group))
        yield
    return DescribeGroupsResponse(groups=groups)


def described_group(group_id):
    return DescribedGroup(group_id=group_id, group_state="", protocol_type="", protocol_data="", members=[])


async def test_a_handler_may_be_a_generator_and_others_are_answered_meanwhile():
    async with serving(Api(ApiKey.DESCRIBE_GROUPS, described), AT_ONCE) as server:
        async with connected(server) as client, connected(server) as other:
            client.send(frame(ApiKey.DESCRIBE_GROUPS, DESCRIBE, 5))
            answer = asyncio.ensure_future(client.answer(ApiKey.DESCRIBE_GROUPS, 5))
            answered = 0
            while not answer.done():
                await other.ask(ApiKey.HEARTBEAT, HEARTBEAT)
                answered += 1
    _, response = answer.result()
    assert [group.group_id for group in response.groups] == DESCRIBE.groups
    assert answered > 1


async def test_what_a_long_request_holds_stays_when_its_buffer_is_used_again():
    seen = []
    api = Api(ApiKey.PRODUCE, lambda request, message: seen.append(message) or request.drop_answer())
    parts = [PartitionProduceData(index=number, records=b"%d" % number) for number in range(MANY)]
    request = ProduceRequest(
        acks=0, timeout_ms=0, topic_data=[TopicProduceData(name="t", partition_data=parts)], transactional_id=None
    )
    async with serving(api, AT_ONCE) as server, connected(server) as client:
        client.send(frame(ApiKey.PRODUCE, request, 9) + frame(ApiKey.HEARTBEAT, HEARTBEAT))
        await client.answer(ApiKey.HEARTBEAT)
    ((topic,),) = (message.topic_data for message in seen)
    assert [(part.index, bytes(part.records)) for part in topic.partition_data] == [
        (number, b"%d" % number) for number in range(MANY)
    ]


async def test_a_request_with_too_many_elements_ends_its_connection():
    handled = []
    api = Api(ApiKey.DESCRIBE_GROUPS, lambda request, message: handled.append(message))
    request = DescribeGroupsRequest(groups=[""] * (MOST_ELEMENTS + 1))
    async with serving(api) as server, connected(server) as client:
        with capture_logs() as logs:
            client.send(frame(ApiKey.DESCRIBE_GROUPS, request, 5))
            assert await client.closed()
    assert [entry["reason"] for entry in logs] == ["too many elements in one message"]
    assert handled == []


async def test_a_controller_tells_brokers_of_more_than_a_client_may_name():
    api = Api(ApiKey.DESCRIBE_GROUPS, lambda request, message: DescribeGroupsResponse(groups=[]))
    request = DescribeGroupsRequest(groups=[""] * (MOST_ELEMENTS + 1))
    async with serving(api) as server, connected(server) as client:
        server.is_from_broker = lambda connection: True
        assert (await client.ask(ApiKey.DESCRIBE_GROUPS, request, 5)).groups == []


async def test_a_long_request_that_is_cut_short_ends_its_connection():
    async with serving(Api(ApiKey.DESCRIBE_GROUPS, described)) as server, connected(server) as client:
        whole = frame(ApiKey.DESCRIBE_GROUPS, DESCRIBE, 5)
        with capture_logs() as logs:
            client.send(framed(whole[4:-100]))
            assert await client.closed()
    assert "cut short" in logs[0]["reason"]


async def test_a_generator_that_fails_ends_its_connection():
    def failing(request, message):
        yield
        raise ValueError("broken")

    async with serving(Api(ApiKey.HEARTBEAT, failing)) as server, connected(server) as client:
        with capture_logs() as logs:
            client.send(frame(ApiKey.HEARTBEAT, HEARTBEAT))
            assert await client.closed()
    assert [entry["event"] for entry in logs] == ["request failed", "connection closed"]


async def test_work_stops_for_a_client_that_is_gone():
    started, closed = asyncio.Event(), asyncio.Event()

    def endless(request, message):
        try:
            while True:
                started.set()
                yield
        finally:
            closed.set()

    async with serving(Api(ApiKey.HEARTBEAT, endless)) as server, connected(server) as client:
        client.send(frame(ApiKey.HEARTBEAT, HEARTBEAT))
        await started.wait()
        client.close()
        await closed.wait()


def test_the_records_of_a_request_that_is_handled_in_pieces_are_never_in_a_receive_buffer():
    """A small frame is decoded in its buffer, and cannot have as many partitions as are handled in pieces."""
    for version in request_type(ApiKey.PRODUCE).versions:
        smallest = least_size(PartitionProduceData, version, version in ProduceRequest.flexible)
        assert SMALL_FRAME / smallest < ELEMENTS_PER_PIECE


async def test_a_request_for_a_very_long_answer_ends_its_connection():
    def long_winded(request, message):
        group = described_group("g")
        group.protocol_data = "x" * 32_000
        yield
        return DescribeGroupsResponse(groups=[group] * MANY)

    async with serving(Api(ApiKey.DESCRIBE_GROUPS, long_winded)) as server, connected(server) as client:
        with capture_logs() as logs:
            client.send(frame(ApiKey.DESCRIBE_GROUPS, DescribeGroupsRequest(groups=["g"]), 5))
            assert await client.closed()
    assert [entry["reason"] for entry in logs] == ["an answer of more than 104857600 bytes"]


class Counted(str):
    left = 0

    def __new__(cls, text):
        cls.left += 1
        return super().__new__(cls, text)

    def __del__(self):
        Counted.left -= 1


async def test_what_a_long_request_was_made_of_is_freed_in_pieces(monkeypatch):
    """The last reference to thousands of objects takes as long to drop as they took to make."""
    freed = []
    monkeypatch.setattr(freeing, "perf_counter", itertools.count(0.0).__next__)

    def described(request, message):
        assert isinstance(message.groups, freeing.LongList)
        groups = []
        for group_id in message.groups:
            groups.append(described_group(Counted(group_id)))
            yield
        return DescribeGroupsResponse(groups=groups)

    async with serving(Api(ApiKey.DESCRIBE_GROUPS, described)) as server, connected(server) as client:
        answer = await client.ask(ApiKey.DESCRIBE_GROUPS, DESCRIBE, version=5)
        assert [group.group_id for group in answer.groups] == DESCRIBE.groups
        assert Counted.left
        while Counted.left:
            before = Counted.left
            await asyncio.sleep(0)
            freed.append(before - Counted.left)
    assert max(freed) <= 16


async def test_a_long_answer_is_sent_in_parts_so_that_its_memory_is_freed_meanwhile():
    groups = [f"{number:010}" * 100 for number in range(MANY)]
    answer = DescribeGroupsResponse(groups=[described_group(group) for group in groups])
    steps = Route(Api(ApiKey.DESCRIBE_GROUPS, described), 5).encode_in_pieces(3, answer, [])
    while True:
        try:
            next(steps)
        except StopIteration as end:
            parts = end.value
            break
    assert all(len(part) < 2 * freeing.BYTES_PER_STEP + 1000 * 1100 for part in parts)
    assert len(parts) >= 3
    whole = b"".join(parts)
    assert struct.unpack_from(">ii", whole) == (len(whole) - 4, 3)
    assert decode(DescribeGroupsResponse, 5, whole[9:]) == answer
