"""The stories that the page tells, of what real clients do: transactions, retries, leaders, rebalances of KIP-848."""

import json
import os
from contextlib import suppress
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from kafka import KafkaProducer

from barnabas import Barnabas
from tests.support.browser import MISSING

pytestmark = [pytest.mark.slow, pytest.mark.skipif(MISSING is not None, reason=MISSING or "")]


@pytest.fixture(scope="module")
def broker():
    with Barnabas(brokers=3, arguments=("--console", "127.0.0.1:0"), journal=False) as broker:
        broker.create_topic("orders", partitions=2, replication_factor=3)
        yield broker


@pytest.fixture
def pictures(tmp_path):
    return Path(os.environ.get("BARNABAS_PICTURES", tmp_path))


def test_a_transaction_that_readers_wait_for(page, broker, pictures):
    settings = {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "shop-1"}
    producer = Producer({**settings, "transaction.timeout.ms": 60_000})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce("orders", b"one", partition=0)
    producer.flush(30)
    reader = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "readers",
            "client.id": "patient",
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 5000,
        }
    )
    reader.assign([TopicPartition("orders", 0, 0)])
    try:
        page.go("transactions")
        page.browser.until("shop-1", "open", "orders-0")
        page.browser.click("a", "shop-1")
        page.browser.until("records in 1 partition", "It has been open for", "begins with orders-0", "this transaction")
        while "patient" not in page.browser.text:
            assert reader.poll(0.05) is None
        page.browser.picture(pictures / "transaction.png")
        offsets = [TopicPartition("orders", 1, 7)]
        producer.send_offsets_to_transaction(offsets, reader.consumer_group_metadata(), 30)
        page.browser.until("Offsets that it commits", "readers", "orders-1")
        producer.commit_transaction(30)
        page.browser.until("the commit was decided", "all markers are written", "offsets of groups")
        while (message := reader.poll(1.0)) is None:
            pass
        assert message.value() == b"one"
    finally:
        reader.close()


def test_a_transaction_that_times_out(page, broker):
    settings = {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "slow-1"}
    producer = Producer({**settings, "transaction.timeout.ms": 10_000})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce("orders", b"late", partition=1)
    producer.flush(30)
    page.go("transactions/slow-1")
    page.browser.until("It has been open for")
    broker.clock.advance(30)
    page.browser.until("the abort was decided", "it was open for more than 10 s: it is aborted")


def test_a_batch_that_comes_twice(page, broker):
    """The broker takes it, and its answer is lost: the producer sends it again."""
    settings = {"bootstrap_servers": broker.bootstrap_servers, "enable_idempotence": True, "client_id": "stutterer"}
    with KafkaProducer(**settings) as producer:
        producer.send("orders", b"first", partition=0).get()
        with broker.faults.add(api="Produce", client_id="stutterer", close="after", times=1):
            producer.send("orders", b"second", partition=0).get()
    page.go("transactions")
    page.browser.until("What producers sent again", "duplicate", "it is in the log already, at offset")


def test_a_producer_that_another_has_replaced(page, broker):
    settings = {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "twice", "log_level": 0}
    producers = [Producer(settings) for _ in range(2)]
    for each in producers:
        each.init_transactions(30)
    zombie, heir = producers
    zombie.begin_transaction()
    with suppress(KafkaException):  # it may hear of it at once
        zombie.produce("orders", b"too late", partition=0)
        zombie.flush(30)
    heir.begin_transaction()
    heir.produce("orders", b"in time", partition=0)
    heir.commit_transaction(30)
    page.go("transactions/twice")
    page.browser.until("was not let in: PRODUCER_FENCED", "the commit was decided")


def test_rebalances_of_a_group_that_the_broker_assigns(page, broker, pictures):
    def member(name):
        consumer = Consumer(
            {
                "bootstrap.servers": broker.bootstrap_servers,
                "group.id": "assigned",
                "group.protocol": "consumer",
                "client.id": name,
                "auto.offset.reset": "earliest",
            }
        )
        consumer.subscribe(["orders"])
        return consumer

    def is_stable_with(count):
        found = broker.state["groups"].get("assigned")
        return found is not None and found["state"] == "Stable" and len(found["members"]) == count

    members = [member("first")]
    try:
        while not is_stable_with(1):
            members[0].poll(0.05)
        members.append(member("second"))
        while not is_stable_with(2):
            for each in members:
                each.poll(0.05)
        page.go("groups/assigned")
        page.browser.until(
            "It began because a member joined: first",
            "It began because a member joined: second",
            "broker assigned the partitions with uniform",
            "that it must let go of partitions; it did within",
            "every member had its partitions",
            "from first to second",
        )
        page.browser.picture(pictures / "consumer-group.png")
        members.pop().close()
        while not is_stable_with(1):
            members[0].poll(0.05)
        page.browser.until("It began because a member is gone: second, it left", "from second to first")
    finally:
        for each in members:
            each.close()


def test_another_broker_leads_when_one_dies(page, broker, pictures):
    leader = next(row["leader"] for row in broker.state["topics"]["orders"]["partitions"] if row["partition"] == 0)
    node = broker.nodes[leader]
    node.kill()
    try:
        page.go("brokers")
        page.browser.until("not running", f"Broker {leader} was killed.", f"leads instead of {leader}, in epoch")
        page.browser.picture(pictures / "brokers.png")
    finally:
        node.start()
    page.browser.until_gone("not running")


def test_avro_values_are_read_with_a_schema(page, broker):
    broker.create_topic("payments")
    # {"id": 150, "who": "K.", "tags": ["a"], "note": null, "amount": 2.5}, by hand
    value = bytes([0xAC, 0x02, 4]) + b"K." + bytes([2, 2]) + b"a" + bytes([0, 0]) + b"\x00\x00\x00\x00\x00\x00\x04\x40"
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        producer.send("payments", value).get()
        producer.send("payments", b"\x00\x00\x00\x00\x07" + value).get()  # as a schema registry has it
        producer.send("payments", b"\x01").get()
    schema = {
        "type": "record",
        "name": "Payment",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "who", "type": "string"},
            {"name": "tags", "type": {"type": "array", "items": "string"}},
            {"name": "note", "type": ["null", "string"]},
            {"name": "amount", "type": "double"},
        ],
    }
    page.go("topics/payments/messages")
    page.browser.until("3 messages")
    page.browser.click("summary", "Avro schema")
    page.browser.type("textarea[aria-label='Avro schema']", json.dumps(schema))
    page.browser.click("button", "Use it")
    page.browser.until("Values are read with it")
    expected = '{"id":150,"who":"K.","tags":["a"],"note":null,"amount":2.5}'
    assert page.browser.text.count(expected) == 2
    page.browser.click("details.message > summary", expected)
    page.browser.until('"amount": 2.5')
    page.browser.click("details.message > summary")  # the newest, which is something else
    page.browser.until("Not by this schema: It ends too soon.")
