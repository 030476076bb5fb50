"""Topics that are created, grow and are deleted while clients use them."""

from tests.integration.clients.interface import Client, ProducerRecord, RecordMetadata, first_while_writing, wait_until

# A client that looks for a topic that was deleted would create it otherwise.
BROKERS = (1, 3)
SETTINGS = {"auto.create.topics.enable": "false"}
OFTEN_MS = 100


def test_a_topic_is_deleted_and_created_again_under_a_consumer(client: Client, topic: str):
    client.write(topic, *[ProducerRecord(b"old")] * 3)
    with client.consumer(topic, auto_offset_reset="earliest", metadata_max_age_ms=OFTEN_MS) as consumer:
        assert [record.value for record in consumer.read(3)] == [b"old"] * 3

        client.delete_topic(topic)
        assert client.partition_count(topic) == 0
        for _ in range(3):
            assert consumer.poll() == []

        # Where in the new topic it continues, at its beginning or end, is up to the client.
        client.create_topic(topic)
        assert first_while_writing(client, consumer, topic).value == b"new"


def test_a_topic_is_deleted_and_created_again_under_a_producer(client: Client, topic: str):
    with client.producer(metadata_max_age_ms=OFTEN_MS) as producer:
        producer.send(topic, [ProducerRecord(b"old")])

        client.delete_topic(topic)
        client.create_topic(topic)

        assert producer.send(topic, [ProducerRecord(b"new")]) == [RecordMetadata(0, 0)]
    with client.consumer(topic) as consumer:
        assert [record.value for record in consumer.read(1)] == [b"new"]


def test_a_producer_writes_to_partitions_that_were_added_meanwhile(client: Client, topic: str):
    with client.producer(metadata_max_age_ms=OFTEN_MS) as producer:
        keys = [b"%d" % number for number in range(50)]
        records = [ProducerRecord(b"value", key) for key in keys]
        assert {place.partition for place in producer.send(topic, records)} == {0}

        client.create_partitions(topic, 3)

        places = []

        def all_written() -> bool:
            places[:] = producer.send(topic, records)
            return {place.partition for place in places} == {0, 1, 2}

        wait_until(all_written, "records in each partition")

    assert client.partition_count(topic) == 3
    for partition in range(1, 3):
        count = sum(place.partition == partition for place in places)
        with client.consumer(topic, partition=partition) as consumer:
            written_here = {key for key, place in zip(keys, places, strict=True) if place.partition == partition}
            assert {record.key for record in consumer.read(count)} == written_here
