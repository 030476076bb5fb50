"""The whole catalogue, against Apache Kafka and against Barnabas: both are as the report in the repository says."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from barnabas.client.client import Client
from barnabas.client.connection import parse_address
from barnabas.client.group_admin import list_groups
from barnabas.conformance.runner import selected
from barnabas.conformance.verdict import Verdict
from tests.support.apache_kafka import ApacheKafka
from tests.support.broker_process import BrokerProcess
from tests.support.conformance import REPORT, check_broker, committed_verdicts, render

pytestmark = pytest.mark.java


def left_behind(bootstrap: str) -> list[str]:
    """The topics and groups that are still there. Apache Kafka's Metadata shows deletions a little later."""
    with Client([parse_address(bootstrap)]) as client:
        deadline = time.monotonic() + 60
        while True:
            topics = [topic.name for topic in client.metadata(None).topics if not topic.is_internal]
            remains = [*topics, *(group.group_id for group in list_groups(client))]
            if not remains or time.monotonic() > deadline:
                return remains


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """The results of Apache Kafka and of Barnabas, and what each of them had to keep afterwards."""
    with (
        ApacheKafka() as kafka,
        BrokerProcess(tmp_path_factory.mktemp("data")) as barnabas,
        ThreadPoolExecutor() as pool,
    ):
        addresses = kafka.bootstrap, barnabas.bootstrap
        results = list(pool.map(check_broker, addresses))
        return results, [left_behind(address) for address in addresses]


def test_apache_kafka_passes_every_check(both):
    """It is the reference: a check that it fails is a wrong check."""
    (kafka, _), _ = both
    failed = [
        f"{each.check.name}: expected {each.expected}, saw {each.seen}"
        for each in kafka
        if each.verdict is Verdict.FAILED
    ]
    assert not failed, "\n".join(failed)


def test_both_are_as_the_report_in_the_repository_says(both):
    (kafka, barnabas), _ = both
    found = {theirs.check.name: (theirs, ours) for theirs, ours in zip(kafka, barnabas, strict=True)}
    committed = committed_verdicts()
    assert list(committed) == [check.name for check in selected([])], "make conformance writes the report anew"
    different = [
        f"{name}: {said.value} in the report, now {result.verdict.value}: expected {result.expected}, saw {result.seen}"
        for name, pair in found.items()
        for result, said in zip(pair, committed[name], strict=True)
        if result.verdict is not said
    ]
    assert not different, "\n".join(different)


def test_the_report_in_the_repository_is_written_by_the_catalogue_of_today(both):
    (kafka, barnabas), _ = both
    assert REPORT.read_text(encoding="utf-8") == render(kafka, barnabas), "make conformance writes the report anew"


def test_nothing_is_left_behind(both):
    _, remains = both
    assert remains == [[], []]
