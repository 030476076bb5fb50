"""kafka-python: when a worker dies, another takes over its work, and the test does not have to wait 45 s."""

import subprocess
import sys

from kafka import KafkaConsumer, KafkaProducer


def work(bootstrap_servers, topic, file_name):
    """The code under test: one of a group of workers that share the orders and record what they have done."""
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=bootstrap_servers,
        group_id="workers",
        auto_offset_reset="earliest",
        session_timeout_ms=45_000,
        heartbeat_interval_ms=100,
    )
    with open(file_name, "a", encoding="utf-8") as file:
        for record in consumer:
            print(record.value.decode(), file=file, flush=True)


def test_a_worker_takes_over_from_one_that_died(kafka_broker, eventually, tmp_path):
    topic = kafka_broker.create_topic(partitions=2)
    done = tmp_path / "done"
    command = [sys.executable, __file__, kafka_broker.bootstrap_servers, topic, done]

    def shares():
        group = kafka_broker.state["groups"].get("workers")
        if group is None or group["state"] != "Stable":
            return []
        return [member["assignment"] for member in group["members"]]

    victim, worker = subprocess.Popen(command), subprocess.Popen(command)
    try:
        eventually(lambda: len(shares()) == 2)
        victim.kill()
        kafka_broker.clock.advance(46)
        eventually(lambda: shares() == [{topic: [0, 1]}])

        producer = KafkaProducer(bootstrap_servers=kafka_broker.bootstrap_servers)
        for partition in (0, 1):
            producer.send(topic, b"order %d" % partition, partition=partition).get(30)
        producer.close()
        eventually(lambda: sorted(done.read_text().splitlines()) == ["order 0", "order 1"])
    finally:
        for process in (victim, worker):
            process.kill()
            process.wait()


if __name__ == "__main__":
    work(*sys.argv[1:])
