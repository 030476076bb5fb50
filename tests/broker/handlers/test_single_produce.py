"""Produce by the shortcut: the same answers and the same log as by the general path."""

from functools import partial

import pytest
from structlog.testing import capture_logs

from barnabas.broker.server.dispatch import Route
from barnabas.broker.server.observe import install, uninstall
from barnabas.client.requests.data import produce
from barnabas.client.requests.records import patched
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.frames import framed
from barnabas.protocol.records.batch import MAGIC_POSITION
from tests.broker.server.harness import connected, frame
from tests.support.batches import batch
from tests.support.file_systems import WatchedFileSystem
from tests.support.running_broker import create_topic, partition, running

VERSIONS = range(9, 14)
VERSION = 12


@pytest.fixture
def decoded():
    """The requests that took the general path: those that were decoded."""
    return []


@pytest.fixture
async def broker(tmp_path, decoded):
    async with running(tmp_path) as broker:
        broker.server.dispatcher.make_routes(partial(counted_route, decoded))
        yield broker


def counted_route(decoded, api, version):
    route = Route(api, version)
    decode = route.decode

    def counted(frame, pos):
        decoded.append(api.key)
        return decode(frame, pos)

    route.decode = counted
    return route


@pytest.fixture
async def client(broker):
    async with connected(broker.server) as client:
        yield client


def the_long_way(request, version):
    """The same request with an unknown tagged field, which is ignored, and which only the decoder reads."""
    return framed(frame(ApiKey.PRODUCE, request, version)[4:-1] + b"\1\x7f\0")


def idempotent(sequence, epoch=0):
    return batch(b"a", producer_id=7, producer_epoch=epoch, base_sequence=sequence)


@pytest.mark.parametrize("version", VERSIONS)
async def test_both_ways_give_the_same_answers(broker, client, decoded, version):
    """What is written to one topic by the shortcut is written to another by the general path."""
    stories = {}
    for name in ("short", "long"):
        topic_id = await create_topic(broker, name)
        compacted = await create_topic(broker, f"{name}-compacted", cleanup_policy="compact")
        stamped = await create_topic(broker, f"{name}-stamped", max_message_bytes=200)
        names = (name, f"{name}-compacted", f"{name}-stamped")
        topic, keyed, small = (topic_id, compacted, stamped) if version >= 13 else names
        answers = []
        for request in (
            produce((topic, 0, batch(b"a", b"b"))),
            produce((topic, 0, batch(b"c")), acks=1),
            produce((topic, 0, batch(b"x")[:-1] + b"\1")),
            produce((topic, 0, patched(batch(b"x"), MAGIC_POSITION, ">b", 1))),
            produce((topic, 0, batch(b"x") + batch(b"y"))),
            produce((topic, 0, batch(b"x")[:70])),
            produce((topic, 0, b"")),
            produce((topic, 0, None)),
            produce((topic, 0, idempotent(0))),
            produce((topic, 0, idempotent(0))),
            produce((topic, 0, idempotent(5))),
            produce((topic, 0, idempotent(1, epoch=-1))),
            produce((topic, 0, batch(b"t", producer_id=7, producer_epoch=0, base_sequence=1, transactional=True))),
            produce((keyed, 0, batch(b"x", key=None))),
            produce((small, 0, batch(bytes(200)))),
            produce((topic, 1, batch(b"x"))),
            produce(("missing" if version < 13 else bytes(range(16)), 0, batch(b"x"))),
            produce((topic, 0, batch(b"x")), acks=2),
            produce((topic, 0, batch(b"the end"))),
        ):
            if name == "long":
                client.send(the_long_way(request, version))
                _, answer = await client.answer(ApiKey.PRODUCE, version)
            else:
                answer = await client.ask(ApiKey.PRODUCE, request, version)
            (response,) = answer.responses
            answers.append((response.partition_responses, answer.throttle_time_ms, answer.node_endpoints))
        log = partition(broker, name, 0).log
        stories[name] = answers, log.end_offset, log.size
    assert stories["short"] == stories["long"]
    assert [answers[0][0].error_code for answers in stories["short"][0]].count(ErrorCode.NONE) == 5
    assert len(decoded) == 5 + 19


async def test_answers_come_in_the_order_of_the_requests_whichever_way_they_went(broker, client, decoded):
    await create_topic(broker)
    requests = [produce(("t", 0, batch(b"a"))), produce(("missing", 0, batch(b"b"))), produce(("t", 0, batch(b"c")))]
    client.send(b"".join(frame(ApiKey.PRODUCE, each, VERSION, number) for number, each in enumerate(requests, start=1)))
    answers = [await client.answer(ApiKey.PRODUCE, VERSION) for _ in requests]
    assert [correlation_id for correlation_id, _ in answers] == [1, 2, 3]
    assert [answer.responses[0].partition_responses[0].base_offset for _, answer in answers] == [0, -1, 1]
    assert len(decoded) == 1


async def test_acks_0_has_no_answer(broker, client, decoded):
    await create_topic(broker)
    client.send(frame(ApiKey.PRODUCE, produce(("t", 0, batch(b"a")), acks=0), VERSION))
    answer = await client.ask(ApiKey.PRODUCE, produce(("t", 0, batch(b"b"))), VERSION, correlation_id=5)
    assert answer.responses[0].partition_responses[0].base_offset == 1
    assert len(decoded) == 1


async def test_a_disk_that_fails(tmp_path):
    disk = WatchedFileSystem()
    async with running(tmp_path, file_system=disk) as broker, connected(broker.server) as client:
        await create_topic(broker)
        disk.broken.append(".log")
        answer = await client.ask(ApiKey.PRODUCE, produce(("t", 0, batch(b"a"))), VERSION)
        disk.broken.clear()
        assert answer.responses[0].partition_responses[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR


async def test_an_observer_sees_everything(broker, client):
    await create_topic(broker)

    class Watcher:
        seen = 0

        def arrived(self, exchange):
            self.seen += 1
            exchange.proceed()

        def answered(self, exchange, answer):
            exchange.send(answer)

        def abandoned(self, exchange, reason):
            pass

        misunderstood = abandoned

    watcher = Watcher()
    install(broker.server.dispatcher, watcher)
    await client.ask(ApiKey.PRODUCE, produce(("t", 0, batch(b"a"))), VERSION)
    uninstall(broker.server.dispatcher)
    await client.ask(ApiKey.PRODUCE, produce(("t", 0, batch(b"b"))), VERSION)
    assert watcher.seen == 1


async def test_an_unforeseen_error_does_not_affect_others(broker, client, monkeypatch):
    await create_topic(broker)
    monkeypatch.setattr(broker, "replicas", None)  # as if an invariant were broken
    with capture_logs() as logs:
        client.send(frame(ApiKey.PRODUCE, produce(("t", 0, batch(b"a"))), VERSION))
        assert await client.closed()
    assert [line["event"] for line in logs] == ["request failed", "connection closed"]
    monkeypatch.undo()
    async with connected(broker.server) as another:
        await another.ask(ApiKey.PRODUCE, produce(("t", 0, batch(b"a"))), VERSION)
