"""Topics of a broker under test: created, filled, and read as a careful reader would read them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

QUIET = {"log_level": 0}  # tests look at what the code under test prints


class Topics:
    def __init__(self, bootstrap: str, security: Mapping[str, str] | None = None) -> None:
        self._client: dict[str, Any] = {**(security or {}), "bootstrap.servers": bootstrap, **QUIET}

    def create(self, **topics: int) -> None:
        """name=partitions; an underscore in a name is a dash."""
        new = [NewTopic(name.replace("_", "-"), partitions, 1) for name, partitions in topics.items()]
        admin = AdminClient(self._client)
        for created in admin.create_topics(new).values():
            created.result(60)

    def fill(self, topic: str, values: Iterable[Any]) -> None:
        """Values, or (key, value) pairs, or keyword arguments of `Producer.produce`."""
        refused: list[str] = []
        producer = Producer(
            {
                **self._client,
                "linger.ms": 5,
                "on_delivery": lambda error, message: refused.append(str(error)) if error is not None else None,
            }
        )
        for each in values:
            if isinstance(each, dict):
                producer.produce(topic, **each)
            elif isinstance(each, tuple):
                producer.produce(topic, key=each[0], value=each[1])
            else:
                producer.produce(topic, each)
            producer.poll(0)
        assert producer.flush(60) == 0
        assert not refused, refused[0]

    def read(self, topic: str) -> list[Message]:
        """Everything that is committed."""
        consumer = Consumer(
            {
                **self._client,
                "group.id": "tests",
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
                "enable.auto.commit": False,
            }
        )
        try:
            partitions = set(consumer.list_topics(topic, timeout=60).topics[topic].partitions)
            consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
            found: list[Message] = []
            while partitions:
                message = consumer.poll(60)
                assert message is not None, f"no end of {topic} within 60 s"
                if message.error():
                    partitions.discard(message.partition())
                else:
                    found.append(message)
            return found
        finally:
            consumer.close()

    def values(self, topic: str) -> list[str]:
        return [(message.value() or b"").decode() for message in self.read(topic)]
