"""The same commands against Apache Kafka: they speak the protocol, and rely on no habit of our own broker."""

import csv

import pytest
from confluent_kafka import Consumer, Producer

from tests.support.apache_kafka import ApacheKafka, run_tool
from tests.support.command import columns, ended, kafkas_description, partitions_read, rows, started
from tests.support.group_members import Members

pytestmark = pytest.mark.java

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]


@pytest.fixture(scope="module")
def apache():
    with ApacheKafka({"num.partitions": "3"}) as kafka:
        yield kafka


@pytest.fixture
def served(apache):
    """The fixtures that run commands run them against this one."""
    return apache


def test_topics(done, from_json, command, topic):
    done("topics", "create", topic, "--partitions", 2, "--config", "retention.ms=60000")
    assert topic in [row["TOPIC"] for row in columns(done("topics", "list"))]
    done("topics", "alter", topic, "--partitions", 4, "--set", "cleanup.policy=compact", "--unset", "retention.ms")
    (described,) = from_json("topics", "describe", topic)
    assert [partition["leader"] for partition in described["partitions"]] == [1, 1, 1, 1]
    assert [(each["name"], each["value"]) for each in described["configs"]] == [("cleanup.policy", "compact")]
    assert "(TOPIC_ALREADY_EXISTS)" in command("topics", "create", topic).err
    assert "(INVALID_PARTITIONS)" in command("topics", "alter", topic, "--partitions", "1").err
    done("topics", "delete", topic)
    assert "(UNKNOWN_TOPIC_OR_PARTITION)" in command("topics", "describe", topic).err


@pytest.mark.parametrize("codec", CODECS)
def test_lines_of_every_codec(done, produce, topic, codec):
    """The topic is made by the first line; Kafka checks every batch that it takes."""
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
            assert ended(ours) == (0, "", "")
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
