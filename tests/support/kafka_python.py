"""What a test must do for kafka-python that an application might leave to luck."""

import threading

from kafka import KafkaConsumer

from tests.support.polling import pause


def wait_for_topic(consumer: KafkaConsumer, topic: str, stop: threading.Event | None = None) -> None:
    """Wait until a consumer knows the partitions of a topic that it has subscribed to, before it is polled.

    A leader that joins before that assigns nothing, and joins again when it learns of them. If the answer to that
    second join arrives between two polls, kafka-python 3.0.12 forgets it: the consumer gets no partitions and sends no
    more heartbeats.
    """
    while not consumer.partitions_for_topic(topic) and not (stop and stop.is_set()):
        pause()
