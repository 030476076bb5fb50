"""Members of a group that other client libraries run."""

import queue
import threading

from confluent_kafka import Consumer as ConfluentConsumer
from kafka import ConsumerRebalanceListener, KafkaConsumer
from kafka.coordinator.assignors.range import RangePartitionAssignor

from tests.support.kafka_python import wait_for_topic

HEARTBEAT_MS = 100  # how soon a member learns about a rebalance


class Members:
    """Consumers of other libraries, polled on threads so that they take part in rebalances; what they read is kept."""

    def __init__(self, bootstrap, group, topic):
        self.bootstrap, self.group, self.topic = bootstrap, group, topic
        self.read = queue.Queue()
        self.assigned = queue.Queue()
        self._stop = threading.Event()
        self._threads = []

    def start(self, library):
        thread = threading.Thread(target={"kafka-python": self._kafka_python, "confluent": self._confluent}[library])
        self._threads.append(thread)
        thread.start()

    def wait_for(self, partitions):
        """Wait until they have been assigned these partitions. A client that does not know the topic yet gets none."""
        while self.assigned.get(timeout=60) != partitions:
            pass

    def _kafka_python(self):
        consumer = KafkaConsumer(
            bootstrap_servers=self.bootstrap,
            group_id=self.group,
            client_id="theirs",
            auto_offset_reset="earliest",
            partition_assignment_strategy=[RangePartitionAssignor],
            heartbeat_interval_ms=HEARTBEAT_MS,
            metadata_max_age_ms=1000,
            # The commit before it joins again may time out in kafka-python 3.0.12, at Apache Kafka, too; it is then
            # taken for dead.
            enable_auto_commit=False,
        )
        consumer.subscribe([self.topic], listener=Listener(self._told))
        wait_for_topic(consumer, self.topic, self._stop)
        while not self._stop.is_set():
            for records in consumer.poll(100).values():
                for record in records:
                    self.read.put(record.value.decode())
        consumer.close()

    def _confluent(self):
        consumer = ConfluentConsumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": self.group,
                "client.id": "theirs",
                "auto.offset.reset": "earliest",
                "partition.assignment.strategy": "range",
                "heartbeat.interval.ms": HEARTBEAT_MS,
            }
        )
        consumer.subscribe([self.topic], on_assign=lambda _, partitions: self._told(partitions))
        while not self._stop.is_set():
            message = consumer.poll(0.1)
            if message is not None and message.error() is None:
                self.read.put(message.value().decode())
        consumer.close()

    def _told(self, partitions):
        self.assigned.put(sorted(each.partition for each in partitions))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._stop.set()
        for thread in self._threads:
            thread.join()


class Listener(ConsumerRebalanceListener):
    def __init__(self, told):
        self.told = told

    def on_partitions_revoked(self, revoked):
        pass

    def on_partitions_assigned(self, assigned):
        self.told(assigned)
