"""What a client writes is what it reads: codecs, headers, keys and values that are null or empty, large records."""

import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from barnabas import Barnabas
from barnabas.protocol.records.batch import read_header
from barnabas.protocol.records.compression import CompressionType
from tests.integration.clients.conftest import EVERY_CLIENT
from tests.integration.clients.interface import (
    Acks,
    Client,
    Compression,
    ConsumerRecord,
    ProducerRecord,
    RecordMetadata,
    RecordTooLargeError,
)

BROKERS = (1, 3)

NOW = int(time.time() * 1000)
CODECS: list[Compression] = ["gzip", "snappy", "lz4", "zstd"]


def written(records: list[ConsumerRecord]) -> list[ProducerRecord]:
    """Records that were read as the producer had written them."""
    return [ProducerRecord(r.value, r.key, r.headers, r.timestamp, r.partition) for r in records]


def read_all(client: Client, topic: str, count: int, **settings: int) -> list[ConsumerRecord]:
    with client.consumer(topic, **settings) as consumer:
        records = consumer.read(count)
    assert [record.offset for record in records] == list(range(count))
    return records


def codecs_on_disk(data: Path, topic: str) -> set[CompressionType]:
    """The codecs of the batches in a topic's first partition."""
    log = (data / f"{topic}-0" / "00000000000000000000.log").read_bytes()
    codecs = set()
    position = 0
    while position < len(log):
        header = read_header(log, position)
        codecs.add(CompressionType(header.compression))
        position += header.size
    return codecs


def test_the_first_record_creates_its_topic(client: Client, new_name: str):
    assert client.write(new_name, ProducerRecord(b"first")) == [RecordMetadata(0, 0)]
    assert [record.value for record in read_all(client, new_name, 1)] == [b"first"]


@pytest.mark.parametrize(("acks", "idempotent"), [("0", False), ("1", False), ("all", False), ("all", True)])
def test_records_are_written_with_all_sorts_of_acknowledgement(
    client: Client, topic: str, acks: Acks, idempotent: bool
):
    with client.producer(acks=acks, enable_idempotence=idempotent) as producer:
        for number in range(5):
            producer.send(topic, [ProducerRecord(b"%d" % number)])

        assert [record.value for record in read_all(client, topic, 5)] == [b"%d" % number for number in range(5)]


@pytest.mark.parametrize("codec", CODECS)
def test_records_come_back_from_every_codec(client: Client, topic: str, broker: Barnabas, codec: Compression):
    missing = client.cannot_compress(codec)
    if missing:
        pytest.skip(missing)
    sent = [ProducerRecord(b"castle " * 50 + b"%d" % n, b"%d" % n, (), NOW + n, 0) for n in range(200)]

    places = client.write(topic, *sent, compression=codec)

    assert [place.offset for place in places] == list(range(200))
    assert codecs_on_disk(broker.data, topic) == {CompressionType[codec.upper()]}
    assert written(read_all(client, topic, 200)) == sent


def test_headers_keep_their_order_and_may_repeat(client: Client, topic: str):
    headers = (("von", b"Klamm"), ("an", b"K."), ("von", b"\x00\xff"), ("", b""), ("Schlo\u00df", b"x" * 5000))
    sent = [ProducerRecord(b"letter", None, headers, NOW, 0), ProducerRecord(b"none", None, (), NOW, 0)]

    client.write(topic, *sent)

    assert written(read_all(client, topic, 2)) == sent


def test_null_is_not_the_same_as_empty(client: Client, topic: str):
    sent = [
        ProducerRecord(b"value", None, (), NOW, 0),
        ProducerRecord(b"value", b"", (), NOW, 0),
        ProducerRecord(None, b"key", (), NOW, 0),
        ProducerRecord(b"", b"key", (), NOW, 0),
        ProducerRecord(b"", None, (), NOW, 0),
        ProducerRecord(None, b"", (), NOW, 0),
    ]

    client.write(topic, *sent)

    assert written(read_all(client, topic, 6)) == sent


def test_a_record_of_1_mb(client: Client, topic: str):
    value = random.Random(0).randbytes(1_000_000)

    client.write(topic, ProducerRecord(value, timestamp=NOW), ProducerRecord(b"small", timestamp=NOW))

    assert [record.value for record in read_all(client, topic, 2)] == [value, b"small"]


def test_a_record_larger_than_a_consumer_asks_for_is_read_nevertheless(client: Client, topic: str):
    value = random.Random(1).randbytes(1_000_000)

    client.write(topic, ProducerRecord(value))

    assert read_all(client, topic, 1, max_partition_fetch_bytes=1000)[0].value == value


def test_a_topic_may_be_set_to_take_records_that_are_too_large(client: Client, topic: str):
    large = ProducerRecord(random.Random(2).randbytes(1_500_000))
    with pytest.raises(RecordTooLargeError):
        client.write(topic, large)

    client.alter_configs(topic, {"max.message.bytes": "2000000"})
    client.write(topic, large)

    assert read_all(client, topic, 1)[0].value == large.value


@pytest.mark.parametrize("writer", EVERY_CLIENT)
def test_every_client_reads_what_any_other_wrote(
    client: Client, topic: str, client_named: Callable[[str], Client], writer: str
):
    other = client_named(writer)
    common = [
        codec for codec in ("none", *CODECS) if not client.cannot_compress(codec) and not other.cannot_compress(codec)
    ]
    sent = [ProducerRecord(codec.encode() * 100, b"key", (("von", b"Klamm"),), NOW, 0) for codec in common]
    for codec, record in zip(common, sent, strict=True):
        other.write(topic, record, record, compression=codec)

    assert written(read_all(client, topic, 2 * len(sent))) == [record for record in sent for _ in range(2)]


def test_null_headers_and_a_record_of_nothing_are_read(
    client: Client, topic: str, client_named: Callable[[str], Client]
):
    """Not every library would write these."""
    sent = [ProducerRecord(b"value", None, (("von", None),), NOW, 0), ProducerRecord(None, None, (), NOW, 0)]

    client_named("confluent-kafka").write(topic, *sent)

    assert written(read_all(client, topic, 2)) == sent
