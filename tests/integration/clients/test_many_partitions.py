"""A topic of ten thousand partitions: its metadata is a large answer, and each of them is as good as any other."""

from collections.abc import Callable

import pytest

from tests.integration.clients.interface import Client, ProducerRecord

PARTITIONS = 10_000
TOPIC = "many"


@pytest.fixture(scope="module", autouse=True)
def many_partitions(client_named: Callable[[str], Client]) -> None:
    client_named("confluent-kafka").create_topic(TOPIC, PARTITIONS)


def test_every_partition_is_in_the_metadata(client: Client):
    assert client.partition_count(TOPIC) == PARTITIONS


def test_records_come_back_from_a_partition_far_away(client: Client):
    numbers = [0, PARTITIONS // 2, PARTITIONS - 1]

    client.write(TOPIC, *[ProducerRecord(client.name.encode(), partition=number) for number in numbers])

    for number in numbers:
        with client.consumer(TOPIC, partition=number) as consumer:
            while client.name.encode() not in [record.value for record in consumer.read(1)]:
                pass
