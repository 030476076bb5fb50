"""A topic of ten thousand partitions: its metadata is large, and the last partition is as good as the first."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from barnabas import Barnabas
from tests.integration.clients.interface import Client, ProducerRecord

PARTITIONS = 10_000
TOPIC = "many"

MEMORY = Path("/dev/shm")
ROOM = 500_000_000


@pytest.fixture(scope="module")
def broker() -> Iterator[Barnabas]:
    """Its tens of thousands of files are in memory where there is room: this is not a test of the disk."""
    in_memory = MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > ROOM
    with (
        tempfile.TemporaryDirectory(dir=MEMORY if in_memory else None) as folder,
        Barnabas(data=folder, journal=False) as process,
    ):
        yield process
        process.kill()


@pytest.fixture(scope="module", autouse=True)
def many_partitions(client_named: Callable[[str], Client]) -> None:
    client_named("confluent-kafka").create_topic(TOPIC, PARTITIONS)


def test_every_partition_is_in_the_metadata(client: Client):
    assert client.partition_count(TOPIC) == PARTITIONS


def test_the_last_partition_is_written_and_read(client: Client):
    value = client.name.encode()

    (place,) = client.write(TOPIC, ProducerRecord(value, partition=PARTITIONS - 1))

    with client.consumer(TOPIC, partition=PARTITIONS - 1) as consumer:
        consumer.seek(place.offset)
        assert consumer.read(1)[0].value == value
