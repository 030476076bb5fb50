"""`barnabas check` finds nothing wrong with a data directory that Apache Kafka wrote and shut down cleanly."""

from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.storage.check import check_directory
from tests.support.apache_kafka import ApacheKafka
from tests.support.java_client import run_scenario

pytestmark = pytest.mark.java


def test_nothing_is_wrong(tmp_path: Path) -> None:
    with ApacheKafka(directory=tmp_path) as kafka:
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
        config = {"internal.segment.bytes": "100000"}
        admin.create_topics([NewTopic("orders", 1, 1, config=config)])["orders"].result(60)
        run_scenario("WriteRecords", kafka.bootstrap, "orders", "1000000")
    assert len(list((kafka.data_directory / "orders-0").glob("*.log"))) > 5
    assert [str(problem) for problem in check_directory(str(kafka.data_directory), deep=True)] == []
