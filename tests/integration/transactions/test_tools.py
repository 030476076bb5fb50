"""Kafka's own tools for transactions report the same about Barnabas as about Apache Kafka."""

import json
import time
from itertools import zip_longest

import pytest

from barnabas.client.requests import admin
from barnabas.client.requests.admin import BROKER, DELETE, SET
from barnabas.client.requests.data import LATEST, list_offsets
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from tests.support.apache_kafka import run_tool
from tests.support.dump_log import dump_log
from tests.support.polling import pause
from tests.support.transaction_side import ABORT, READ_COMMITTED
from tests.support.transaction_versions import LATEST_CLASSIC, NEWEST

pytestmark = pytest.mark.java

FORMATTER = "org.apache.kafka.tools.consumer.TransactionLogMessageFormatter"


def both(brokers, function):
    """What a function of each side gives, Apache Kafka's first."""
    return [function(side) for side in (brokers.kafka, brokers.barnabas)]


def begin(brokers, name, age=NEWEST):
    for side in (brokers.kafka, brokers.barnabas):
        side.begin(name, age)


def transactions(side, *arguments, check=True):
    return run_tool("kafka-transactions", "--bootstrap-server", f"127.0.0.1:{side.port}", *arguments, check=check)


def rows(side, printed):
    """A table as the tools print it, row by row: ids, times and durations replaced by what they are."""
    header, *lines = (line.split() for line in printed.splitlines())
    found = []
    for line in lines:
        row = dict(zip_longest(header, line, fillvalue=""))
        if row.get("ProducerId", "").isdigit():
            row["ProducerId"] = side.number(int(row["ProducerId"]))
        for name in row:
            if name.endswith(("TimeMs", "DurationMs", "Timestamp", "Duration(min)")) and row[name].isdigit():
                row[name] = "so many"
        found.append(row)
    return sorted(found, key=repr)


def value_of(side, value):
    """The value of a record in the transaction log, in the same way. Its topics are in no order."""
    data = {**value["data"], "producerId": side.number(value["data"]["producerId"])}
    for name in ("previousProducerId", "nextProducerId"):
        if name in data:
            data[name] = side.number(data[name])
    for name in ("transactionLastUpdateTimestampMs", "transactionStartTimestampMs"):
        data[name] = "TIME" if data[name] > 0 else data[name]
    partitions = data["transactionPartitions"]
    data["transactionPartitions"] = partitions and sorted(
        (each["topic"], sorted(each["partitionIds"])) for each in partitions
    )
    return {**value, "data": data}


def objects(text):
    """JSON objects that follow each other, with or without something in between."""
    decoder = json.JSONDecoder()
    at = text.find("{")
    while at >= 0:
        found, end = decoder.raw_decode(text, at)
        yield found
        at = text.find("{", end)


def test_list_and_describe(brokers):
    def story(side):
        side.init()
        side.whole(b"a")
        side.produce(b"b")
        side.produce(b"c", partition=1)
        listed = transactions(side, "list", "--transactional-id-pattern", side.id).stdout
        described = transactions(side, "describe", "--transactional-id", side.id).stdout
        side.end()
        side.settled()
        ended = transactions(side, "describe", "--transactional-id", side.id).stdout
        return rows(side, listed), rows(side, described), rows(side, ended)

    begin(brokers, "tools-list")
    theirs, ours = both(brokers, story)
    assert ours == theirs
    assert [row["TransactionState"] for row in ours[0]] == ["Ongoing"]


def verify_partitions(side, value):
    """Whether the broker verifies before it accepts records of a transaction; None is its default."""
    operation = SET if value else DELETE
    altered = (BROKER, "", [(operation, "transaction.partition.verification.enable", value)])
    (answer,) = side.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, admin.incremental_alter_configs(altered), 1).responses
    assert answer.error_code == ErrorCode.NONE


def leave_hanging(side):
    """Records in a transaction that its coordinator does not know, from an hour ago."""
    side.init()
    verify_partitions(side, "false")
    an_hour_ago = int(time.time() * 1000) - 3_600_000
    # Apache Kafka answers before the setting is effective.
    while side.produce(b"a", timestamp=an_hour_ago).responses[0].partition_responses[0].error_code:
        pause()
    verify_partitions(side, None)


def test_describe_producers_find_hanging_and_abort(brokers):
    """An administrator ends what is open in a partition and would stay so forever, without asking the coordinator."""

    def story(side):
        leave_hanging(side)
        where = ("--topic", side.source, "--partition", "0")
        producers = transactions(side, "describe-producers", *where).stdout
        hanging = transactions(side, "find-hanging", *where).stdout
        refused = transactions(side, "abort", *where, "--start-offset", "7", check=False)
        transactions(side, "abort", *where, "--start-offset", "0")
        side.produce(
            b"behind", transactional=False, transactional_id=None, producer_id=-1, producer_epoch=-1, sequence=-1
        )
        after = transactions(side, "describe-producers", *where).stdout
        read = side.comparable(side.read(READ_COMMITTED))
        last_words = refused.returncode, refused.stderr.strip().splitlines()[-1:]
        return rows(side, hanging), rows(side, producers), last_words, rows(side, after), read

    begin(brokers, "tools-abort", LATEST_CLASSIC)
    theirs, ours = both(brokers, story)
    assert ours == theirs
    assert [row["StartOffset"] for row in ours[0]] == ["0"]


@pytest.mark.parametrize("age", [LATEST_CLASSIC, NEWEST])
def test_the_transaction_log(brokers, age):
    """kafka-dump-log and a console consumer with Kafka's formatter read the same records, in the same order."""

    def story(side):
        side.init()
        side.whole(b"a")
        side.prepare(0, 1)
        side.produce(b"b", partition=1)
        side.prepare_offsets()
        side.commit_offsets((0, 5))
        side.end(ABORT)
        side.settled()
        dumped = [
            list(objects(line.partition(" key: ")[2]))
            for folder in sorted(side.data.glob("__transaction_state-*"))
            for line in dump_log(sorted(folder.glob("*.log")), "--transaction-log-decoder").splitlines()
            if f'"{side.id}"' in line
        ]
        return [(key, value_of(side, value)) for key, value in dumped]

    begin(brokers, f"tools-log-{age}", age)
    theirs, ours = both(brokers, story)
    assert ours == theirs
    assert len(ours) >= 6  # Empty, and twice Ongoing, Prepare, Complete


def test_the_transaction_log_through_a_consumer(brokers):
    def story(side):
        side.init()
        side.whole(b"a")
        ends = list_offsets(*(("__transaction_state", index, LATEST) for index in range(2)))
        (topic,) = side.ask(ApiKey.LIST_OFFSETS, ends, 7).topics
        printed = run_tool(
            "kafka-console-consumer",
            *("--bootstrap-server", f"127.0.0.1:{side.port}", "--topic", "__transaction_state", "--from-beginning"),
            *("--formatter", FORMATTER, "--max-messages", str(sum(each.offset for each in topic.partitions))),
        ).stdout
        found = [each for each in objects(printed) if each["key"]["data"]["transactionalId"] == side.id]
        return [(each["key"], value_of(side, each["value"])) for each in found]

    begin(brokers, "tools-consumer")
    theirs, ours = both(brokers, story)
    assert ours == theirs
    assert len(ours) == 4
