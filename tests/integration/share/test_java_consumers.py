"""Java's share consumers: they see the same of Apache Kafka and of Barnabas."""

import pytest

from barnabas.client.requests.data import produce
from barnabas.client.requests.records import batch
from barnabas.protocol.api import ApiKey
from tests.support.apache_kafka import run_tool
from tests.support.java_client import run_scenario

pytestmark = pytest.mark.java


def test_share_consumers(brokers):
    found = run_scenario("ShareConsumers", f"127.0.0.1:{brokers.barnabas.port}", timeout=120)
    assert found == {
        "implicit": [*(f"r@{offset} 1" for offset in range(8))],
        "explicit": [
            *(f"r@{offset} 1 {said}" for offset, said in enumerate(["accept", "release", "reject"] * 2)),
            "r@1 2 accept",
            "r@4 2 accept",
        ],
        "limit": ["r@0 1 release", "r@0 2 release", "r@0 3 release", "r@1 1 accept"],
        "closed": ["r@0 2 accept", "r@1 2 accept"],
        "transactions": ["committed@2 1 accept", "committed@6 1 accept"],
    }


def test_the_console_share_consumer(brokers):
    side = brokers.barnabas
    side.begin("console")
    side.set_for_group("share.auto.offset.reset", "earliest")
    side.place("console")
    side.ask(ApiKey.PRODUCE, produce(("console", 1, batch(b"one", b"two", b"three"))), 9)
    server = f"127.0.0.1:{side.port}"
    arguments = "--topic", "console", "--group", "console", "--max-messages", "2", "--timeout-ms", "30000"
    done = run_tool("kafka-console-share-consumer", "--bootstrap-server", server, *arguments)
    assert done.stdout.split() == ["one", "two"]
