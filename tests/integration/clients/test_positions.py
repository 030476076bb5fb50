"""Where a consumer starts, where it seeks to, and where it continues when its position is no longer in the log."""

import time

import pytest

from tests.integration.clients.interface import (
    Client,
    Consumer,
    ConsumerRecord,
    OffsetOutOfRangeError,
    ProducerRecord,
    first_while_writing,
    wait_until,
)

BROKERS = (1, 3)
SETTINGS = {"log.retention.check.interval.ms": "100"}

MINUTE = 60_000
BASE = int(time.time() * 1000) - 60 * MINUTE


@pytest.fixture
def ten_records(client: Client, topic: str) -> str:
    """A topic with the offsets 0 to 9, a minute between them, written two and two together."""
    with client.producer() as producer:
        for pair in range(0, 10, 2):
            producer.send(topic, [minutes_later(pair), minutes_later(pair + 1)])
    return topic


def minutes_later(number: int) -> ProducerRecord:
    return ProducerRecord(b"%d" % number, timestamp=BASE + number * MINUTE)


def offsets(records: list[ConsumerRecord]) -> list[int]:
    return [record.offset for record in records]


def test_a_consumer_begins_at_the_beginning(client: Client, ten_records: str):
    with client.consumer(ten_records, auto_offset_reset="earliest") as consumer:
        assert offsets(consumer.read(10)) == list(range(10))


def test_a_consumer_begins_at_the_end(client: Client, ten_records: str):
    with client.consumer(ten_records, auto_offset_reset="latest") as consumer:
        assert first_while_writing(client, consumer, ten_records).offset >= 10


def test_the_offsets_of_beginning_and_end(client: Client, ten_records: str):
    client.delete_records(ten_records, before_offset=3)
    with client.consumer(ten_records) as consumer:
        assert (consumer.beginning_offset(), consumer.end_offset()) == (3, 10)


def test_seek_to_an_offset(client: Client, ten_records: str):
    with client.consumer(ten_records) as consumer:
        consumer.read(10)
        consumer.seek(7)
        assert offsets(consumer.read(3)) == [7, 8, 9]
        consumer.seek(2)
        assert offsets(consumer.read(8)) == list(range(2, 10))


def test_seek_to_the_beginning(client: Client, ten_records: str):
    with client.consumer(ten_records) as consumer:
        consumer.read(10)
        consumer.seek_to_beginning()
        assert offsets(consumer.read(10)) == list(range(10))


def test_seek_to_the_end(client: Client, ten_records: str):
    with client.consumer(ten_records) as consumer:
        consumer.read(3)  # aiokafka may overlook a seek while it looks for the beginning
        consumer.seek_to_end()
        new = first_while_writing(client, consumer, ten_records)
        assert new.offset >= 10
        assert new.value == b"new"


def test_seek_to_a_timestamp(client: Client, ten_records: str):
    with client.consumer(ten_records) as consumer:
        consumer.read(10)
        for timestamp, offset in [
            (0, 0),
            (BASE, 0),
            (BASE + 5 * MINUTE, 5),
            (BASE + 5 * MINUTE + 1, 6),
            (BASE + 9 * MINUTE, 9),
        ]:
            assert consumer.offset_for_time(timestamp) == offset
            consumer.seek(offset)
            assert offsets(consumer.read(10 - offset)) == list(range(offset, 10))
        assert consumer.offset_for_time(BASE + 9 * MINUTE + 1) is None


class TestOutOfRange:
    """Beyond the end, and before the beginning of a log whose first records were deleted."""

    @pytest.mark.parametrize("position", [1, 1000])
    def test_earliest_goes_to_the_beginning(self, client: Client, ten_records: str, position: int):
        client.delete_records(ten_records, before_offset=4)
        with client.consumer(ten_records, auto_offset_reset="earliest") as consumer:
            consumer.read(6)
            consumer.seek(position)
            assert offsets(consumer.read(6)) == list(range(4, 10))

    @pytest.mark.parametrize("position", [1, 1000])
    def test_latest_goes_to_the_end(self, client: Client, ten_records: str, position: int):
        client.delete_records(ten_records, before_offset=4)
        with client.consumer(ten_records, auto_offset_reset="latest") as consumer:
            consumer.seek(position)
            assert first_while_writing(client, consumer, ten_records).offset >= 10

    @pytest.mark.parametrize("position", [1, 1000])
    def test_none_is_an_error(self, client: Client, ten_records: str, position: int):
        client.delete_records(ten_records, before_offset=4)
        with client.consumer(ten_records, auto_offset_reset="none") as consumer:
            assert offsets(consumer.read(6)) == list(range(4, 10))
            consumer.seek(position)
            with pytest.raises(OffsetOutOfRangeError):
                consumer.read(1)

    def test_the_end_itself_is_in_range(self, client: Client, ten_records: str):
        with client.consumer(ten_records, auto_offset_reset="none") as consumer:
            consumer.read(10)
            consumer.seek(10)
            client.write(ten_records, ProducerRecord(b"new"))
            assert offsets(consumer.read(1)) == [10]


class TestSlowerThanRetention:
    """A consumer has read the first of eight records, two in a segment, when all segments but the last are deleted."""

    @pytest.fixture
    def eight_records(self, client: Client, new_name: str) -> str:
        client.create_topic(new_name, configs={"segment.bytes": "1048576"})
        with client.producer() as producer:
            for _ in range(8):
                producer.send(new_name, [ProducerRecord(bytes(500_000))])
        return new_name

    def delete_old_segments(self, client: Client, consumer: Consumer, topic: str) -> None:
        client.alter_configs(topic, {"retention.bytes": "1"})
        wait_until(lambda: consumer.beginning_offset() == 6, "retention")

    def read_until_end(self, consumer: Consumer) -> list[int]:
        found = []
        while 7 not in found:
            found += offsets(consumer.read(1))
        return found

    def test_earliest_goes_to_the_new_beginning(self, client: Client, eight_records: str):
        with client.consumer(eight_records, auto_offset_reset="earliest", max_partition_fetch_bytes=1) as consumer:
            found = offsets(consumer.read(1))
            self.delete_old_segments(client, consumer, eight_records)
            found += self.read_until_end(consumer)
        # What it had fetched ahead it keeps.
        ahead = len(found) - 2
        assert found == [*range(ahead), 6, 7]
        assert ahead < 6

    def test_latest_goes_to_the_end(self, client: Client, eight_records: str):
        with client.consumer(eight_records, auto_offset_reset="latest", max_partition_fetch_bytes=1) as consumer:
            consumer.seek(0)
            consumer.read(1)
            self.delete_old_segments(client, consumer, eight_records)
            new = first_while_writing(client, consumer, eight_records)
            while new.offset < 6:
                new = first_while_writing(client, consumer, eight_records)
        assert new.offset >= 8

    def test_none_is_an_error(self, client: Client, eight_records: str):
        with client.consumer(eight_records, auto_offset_reset="none", max_partition_fetch_bytes=1) as consumer:
            consumer.read(1)
            self.delete_old_segments(client, consumer, eight_records)
            with pytest.raises(OffsetOutOfRangeError):
                self.read_until_end(consumer)
