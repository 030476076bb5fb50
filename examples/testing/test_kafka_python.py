"""kafka-python: when a worker dies, another one gets its share of the work, and the test need not wait 45 s for it."""

import subprocess
import sys
import threading

from kafka import KafkaConsumer, KafkaProducer


def work(bootstrap_servers, topic, handle, stopped):
    """The code under test: one of a group of workers that share the orders."""
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=bootstrap_servers,
        group_id="workers",
        auto_offset_reset="earliest",
        session_timeout_ms=45_000,
        heartbeat_interval_ms=100,
    )
    while not stopped.is_set():
        for records in consumer.poll(timeout_ms=100).values():
            for record in records:
                handle(record.value)
    consumer.close()


def test_a_worker_takes_over_from_one_that_died(kafka_broker, eventually):
    topic = kafka_broker.create_topic(partitions=2)
    arguments = (kafka_broker.bootstrap_servers, topic)

    def shares():
        group = kafka_broker.state["groups"].get("workers")
        if group is None or group["state"] != "Stable":
            return []
        return [member["assignment"] for member in group["members"]]

    orders, stopped = [], threading.Event()
    worker = threading.Thread(target=work, args=(*arguments, orders.append, stopped))
    worker.start()
    victim = subprocess.Popen([sys.executable, __file__, *arguments])
    try:
        eventually(lambda: len(shares()) == 2)
        victim.kill()
        kafka_broker.clock.advance(46)
        eventually(lambda: shares() == [{topic: [0, 1]}])

        producer = KafkaProducer(bootstrap_servers=kafka_broker.bootstrap_servers)
        for partition in (0, 1):
            producer.send(topic, b"order %d" % partition, partition=partition).get(30)
        producer.close()
        eventually(lambda: sorted(orders) == [b"order 0", b"order 1"])
    finally:
        victim.kill()
        victim.wait()
        stopped.set()
        worker.join()


if __name__ == "__main__":
    work(*sys.argv[1:], print, threading.Event())
