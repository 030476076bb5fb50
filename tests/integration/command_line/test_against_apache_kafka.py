"""The same commands against Apache Kafka: they do not rely on anything specific to our own broker."""

import csv
import json
import os
import time

import pytest
from confluent_kafka import Consumer, Producer

from barnabas.command import main
from tests.support.apache_kafka import ApacheKafka, run_tool
from tests.support.command import columns, ended, kafkas_description, partitions_read, rows, started
from tests.support.group_members import Members
from tests.support.polling import pause

pytestmark = pytest.mark.java

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]


@pytest.fixture
def served(apache_kafka):
    """The fixtures that run commands run them against this one."""
    return apache_kafka


def eventually(look, expected, seconds=60):
    """Apache Kafka answers before a change is visible everywhere, and only asking again shows that it is."""
    deadline = time.monotonic() + seconds
    while (seen := look()) != expected and time.monotonic() < deadline:
        pause()
    assert seen == expected


def test_topics(done, from_json, command, topic):
    done("topics", "create", topic, "--partitions", 2, "--config", "retention.ms=60000")
    eventually(lambda: topic in [row["TOPIC"] for row in columns(done("topics", "list"))], True)
    done(
        "topics",
        "alter",
        topic,
        "--partitions",
        4,
        "--config",
        "cleanup.policy=compact",
        "--delete-config",
        "retention.ms",
    )

    def described():
        (found,) = from_json("topics", "describe", topic)
        leaders = [partition["leader"] for partition in found["partitions"]]
        return leaders, [(each["name"], each["value"]) for each in found["configs"]]

    eventually(described, ([1, 1, 1, 1], [("cleanup.policy", "compact")]))
    assert "(TOPIC_ALREADY_EXISTS)" in command("topics", "create", topic).err
    assert "(INVALID_PARTITIONS)" in command("topics", "alter", topic, "--partitions", "1").err
    done("topics", "delete", topic)
    eventually(lambda: "(UNKNOWN_TOPIC_OR_PARTITION)" in command("topics", "describe", topic).err, True)


def test_records_are_deleted(done, produce, topic):
    produce(topic, *"abc", options=("-p", "0"))
    (row,) = columns(done("topics", "delete-records", topic, "--before", "-1", "-p", "0"))
    assert (row["LOG-START-OFFSET"], row["LOG-END-OFFSET"]) == ("2", "3")
    assert done("consume", topic, "-e").split() == ["c"]


def test_settings(done, from_json, topic, group):
    done("topics", "create", topic)
    resources = (
        ("topic", topic, "retention.ms", "60000", "topic"),
        ("broker", "1", "log.cleaner.threads", "2", "broker"),
        ("broker", "default", "message.max.bytes", "2000000", "cluster"),
        ("group", group, "consumer.session.timeout.ms", "50000", "group"),
    )
    for kind, name, key, value, _ in resources:
        done("configs", "set", kind, name, f"{key}={value}")
    for kind, name, key, value, source in resources:

        def described(resource=(kind, name, key)):
            return [(each["value"], each["source"]) for each in from_json("configs", "describe", *resource)]

        eventually(described, [(value, source)])

    def listed():
        found = {(each["type"], each["resource"], each["name"], each["value"]) for each in from_json("configs", "list")}
        return found & {tuple(each[:4]) for each in resources}

    assert len(listed()) == len(resources)
    for kind, name, key, *_ in resources:
        done("configs", "unset", kind, name, key)
    eventually(listed, set())


def test_the_cluster(served, from_json):
    found = from_json("cluster")
    assert [(each["id"], each["address"]) for each in found["brokers"]] == [(1, served.bootstrap)]
    assert "metadata.version" in [each["feature"] for each in found["features"]]


def test_whole_records(done, produce, topic):
    record = {
        "key": "k",
        "value": "v",
        "headers": [{"name": "h", "value": None}],
        "partition": 2,
        "timestamp": 1_700_000_000_000,
    }
    produce(topic, json.dumps(record), options=("--json",))
    assert json.loads(done("consume", topic, "-e", "--json")) == {**record, "topic": topic, "offset": 0}


def test_a_topic_that_appears_is_read(served, produce, topic):
    with started(served, "consume", "--regex", f"{topic}-.*") as consumer:
        assert "waiting for one" in consumer.stderr.readline()
        produce(f"{topic}-a", "first")
        assert consumer.stdout.readline() == "first\n"
        assert ended(consumer)[0] == 0


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ({"auto.create.topics.enable": "false"}, "does not create topics on first use"),
        ({"default.replication.factor": "3"}, "INVALID_REPLICATION_FACTOR"),
    ],
)
def test_a_topic_that_cannot_be_created_is_an_error_at_once(setting, said, capsys):
    with ApacheKafka(setting) as kafka:
        # The test would take ten minutes if it waited.
        assert main(["produce", "new", "--file", os.devnull, "-b", kafka.bootstrap, "--timeout", "10m"]) == 1
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("codec", CODECS)
def test_lines_of_every_codec(done, produce, topic, codec):
    """The first line creates the topic; Kafka checks every batch that it accepts."""
    lines = [f"{number}:line {number} " + "x" * 50 for number in range(1000)]
    produce(topic, *lines, options=("--key-separator", ":", "-H", "a=b", "--compression", codec))
    assert sorted(done("consume", topic, "-e", "--format", "%k:%v").splitlines()) == sorted(lines)


def test_kafkas_own_console_consumer_reads_what_was_produced(served, produce, topic):
    produce(topic, "k1=v1", options=("--key-separator", "=", "-H", "h=1"))
    read = run_tool(
        *("kafka-console-consumer", "--bootstrap-server", served.bootstrap, "--topic", topic, "--from-beginning"),
        *(
            "--max-messages",
            "1",
            "--formatter-property",
            "print.key=true",
            "--formatter-property",
            "print.headers=true",
        ),
    )
    assert read.stdout == "h:1\tk1\tv1\n"


def test_what_transactions_did_not_commit_is_left_out(served, done, topic):
    done("topics", "create", topic, "--partitions", 1)
    producer = Producer({"bootstrap.servers": served.bootstrap, "transactional.id": topic})
    producer.init_transactions()
    for number, end in enumerate(["commit", "abort", "commit", "abort"]):
        producer.begin_transaction()
        producer.produce(topic, f"{end} {number}")
        producer.flush()
        producer.commit_transaction() if end == "commit" else producer.abort_transaction()
    committed = done("consume", topic, "-e", "--isolation", "read_committed").splitlines()
    assert committed == ["commit 0", "commit 2"]
    assert done("consume", topic, "-e").splitlines() == ["commit 0", "abort 1", "commit 2", "abort 3"]
    producer.begin_transaction()
    producer.produce(topic, "open")
    producer.flush()
    assert done("consume", topic, "-e", "--isolation", "read_committed").splitlines() == committed
    producer.abort_transaction()


def test_a_member_among_others(served, done, produce, topic, group):
    done("topics", "create", topic, "--partitions", 4)
    with Members(served.bootstrap, group, topic) as theirs:
        theirs.start("kafka-python")
        theirs.wait_for([0, 1, 2, 3])
        with started(served, "consume", topic, "--group", group, "-v", "--from-beginning") as ours:
            share = partitions_read(ours)
            theirs.wait_for([index for index in range(4) if index not in share])
            for index in range(4):
                produce(topic, f"to {index}", options=("--partition", index))
            assert sorted(ours.stdout.readline().strip() for _ in share) == [f"to {index}" for index in share]
            status, out, err = ended(ours)
            assert (status, out) == (0, "")
            # kafka-python may have joined once more of its own accord, after which the same partitions are read on.
            assert all(line.startswith("barnabas: reading ") for line in err.splitlines())
        theirs.wait_for([0, 1, 2, 3])


def test_a_group_of_the_next_generation(served, done, produce, from_json, topic, group):
    produce(topic, "a", options=("--partition", 0))
    consumer = Consumer(
        {
            "bootstrap.servers": served.bootstrap,
            "group.id": group,
            "group.protocol": "consumer",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([topic])
    while (message := consumer.poll(1)) is None or message.error():
        pass
    consumer.commit(message, asynchronous=False)
    assert rows(done("groups", "describe", group)) == rows(kafkas_description(served.bootstrap, group))
    (listed,) = [row for row in from_json("groups", "list") if row["group"] == group]
    assert (listed["type"], listed["state"]) == ("consumer", "Stable")
    consumer.close()
    done("groups", "delete", group)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--to-earliest"],
        ["--to-latest"],
        ["--to-current"],
        ["--to-offset", "2"],
        ["--shift-by", "-1"],
        ["--to-datetime", "2020-01-01T00:00:00.000"],
        ["--by-duration", "P1D"],
    ],
    ids=" ".join,
)
def test_offsets_are_reset_to_where_kafkas_tool_would(served, command, done, produce, topic, group, arguments):
    for index in range(3):
        produce(topic, *"abcdef"[: index + 2], options=("--partition", index))
    done("consume", topic, "--group", group, "-e")
    ours = command("groups", "reset-offsets", group, "--topic", topic, *arguments, "--export").out
    theirs = run_tool(
        *("kafka-consumer-groups", "--bootstrap-server", served.bootstrap, "--reset-offsets", "--group", group),
        *("--topic", topic, *arguments, "--dry-run", "--export"),
    ).stdout
    assert sorted(csv.reader(ours.split())) == sorted(csv.reader(theirs.split()))


def test_offsets_are_reset(served, done, from_json, command, produce, topic, group):
    produce(topic, *"abc", options=("--partition", 0))
    with started(served, "consume", topic, "--group", group, "--from-beginning") as member:
        member.stdout.readline()
        refused = command("groups", "reset-offsets", group, "--topic", topic, "--to-earliest", "--execute")
        assert refused.status == 1
        assert "offsets can be reset once all of them have left" in refused.err
        ended(member)
    done("groups", "reset-offsets", group, "--topic", f"{topic}:0", "--to-offset", "1", "--execute")
    assert done("consume", topic, "--group", group, "-e").split() == ["b", "c"]
    done("groups", "delete", group)
    assert "(GROUP_ID_NOT_FOUND)" in command("groups", "describe", group).err
