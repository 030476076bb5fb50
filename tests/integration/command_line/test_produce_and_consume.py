"""`barnabas produce` and `barnabas consume` against a real broker."""

import json
import os
import pty
import subprocess

import pytest
from confluent_kafka import Producer as ConfluentProducer
from kafka import KafkaProducer

from barnabas import Barnabas
from barnabas.command import main
from tests.support.broker_process import BrokerProcess
from tests.support.command import ended, started
from tests.support.ports import HeldPort

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]


def test_lines_go_in_and_come_out(done, produce, topic):
    produce(topic, "one", "", "drei ü", options=("--partition", "0"))
    assert done("consume", topic, "--no-follow") == "one\n\ndrei ü\n"


def test_keys_headers_and_tombstones(done, produce, topic):
    lines = ("a:1", "b:2", "a:-", "c:x:y")
    produce(topic, *lines, options=("--key-separator", ":", "-H", "source=test", "-H", "empty", "--null", "-"))
    records = [json.loads(line) for line in done("consume", topic, "-e", "--format", "json").splitlines()]
    assert sorted((record["key"], record["value"] or "") for record in records) == [
        ("a", ""),
        ("a", "1"),
        ("b", "2"),
        ("c", "x:y"),
    ]
    assert len({record["partition"] for record in records if record["key"] == "a"}) == 1
    headers = [{"name": "source", "value": "test"}, {"name": "empty", "value": None}]
    assert all(record["headers"] == headers for record in records)


def test_keys_go_where_other_clients_put_them(served, done, produce, topic):
    keys = [f"key-{number}" for number in range(50)]
    produce(topic, *(f"{key}\tbarnabas" for key in keys), options=("--key-separator", r"\t"))
    producer = KafkaProducer(bootstrap_servers=served.bootstrap)
    for key in keys:
        producer.send(topic, key=key.encode(), value=b"kafka-python")
    producer.close()
    lines = done("consume", topic, "-e", "--format", "%k %p %v").splitlines()
    ours = {line.rsplit(" ", 1)[0] for line in lines if line.endswith("barnabas")}
    theirs = {line.rsplit(" ", 1)[0] for line in lines if line.endswith("kafka-python")}
    assert ours == theirs
    assert len(ours) == 50


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("acks", ["all", "1"])
def test_every_codec(done, produce, topic, codec, acks):
    lines = [f"line {number} " + "x" * 50 for number in range(1000)]
    produce(topic, *lines, options=("--compression", codec, "--acks", acks, "--partition", "0"))
    assert done("consume", topic, "-e").splitlines() == lines


@pytest.mark.parametrize("codec", CODECS[1:])
def test_every_codec_of_another_client(served, done, topic, codec):
    producer = ConfluentProducer({"bootstrap.servers": served.bootstrap, "compression.type": codec, "linger.ms": 100})
    for number in range(100):
        producer.produce(topic, str(number), partition=0)
    producer.flush()
    assert done("consume", topic, "-e").splitlines() == [str(number) for number in range(100)]


def test_much_is_written_in_few_batches_and_all_of_it(done, produce, from_json, topic):
    produce(topic, *(f"{number:07d}" for number in range(100_000)))
    assert sorted(done("consume", topic, "-e").splitlines()) == [f"{number:07d}" for number in range(100_000)]
    (described,) = from_json("topics", "describe", topic)
    assert all(partition["log_end_offset"] for partition in described["partitions"])


def test_where_it_begins_and_how_much_it_reads(done, produce, topic):
    produce(topic, *"abcdef", options=("--partition", "0"))
    produce(topic, *"xyz", options=("--partition", "1"))
    assert done("consume", topic, "-e", "--partition", "0", "--offset", "4").split() == ["e", "f"]
    assert done("consume", topic, "-e", "--offset", "-1").split() == ["f", "z"]
    assert done("consume", topic, "-e", "--offset", "latest") == ""
    assert done("consume", topic, "--from-beginning", "--partition", "1", "--max-messages", "2").split() == ["x", "y"]
    assert done("consume", topic, "-e", "--partition", "2") == ""


def test_where_it_begins_by_time(done, produce, topic):
    for hour in (10, 11, 12):
        produce(topic, str(hour), options=("-p", "0", "--timestamp", f"2026-01-31T{hour}:00"))
    assert done("consume", topic, "-e", "-o", "@2026-01-31T10:30").split() == ["11", "12"]
    assert done("consume", topic, "-e", "-o", "@-1h") == ""
    assert done("consume", topic, "-e", "-o", "@0").split() == ["10", "11", "12"]


def test_a_topic_that_is_not_created_automatically_is_an_error_at_once(tmp_path, capsys):
    with BrokerProcess(tmp_path / "data", settings={"auto.create.topics.enable": "false"}) as broker:
        # The test would take ten minutes if it waited.
        assert main(["produce", "new", "--file", os.devnull, "-b", broker.bootstrap, "--timeout", "10m"]) == 1
    assert capsys.readouterr().err == (
        "barnabas: topic 'new': it does not exist, and the broker does not create topics on first use "
        "(auto.create.topics.enable=false) (UNKNOWN_TOPIC_OR_PARTITION)\n"
    )


def test_a_topic_that_cannot_be_created_is_an_error_at_once(tmp_path, capsys):
    with BrokerProcess(tmp_path / "data", settings={"default.replication.factor": "3"}) as broker:
        assert main(["produce", "new", "--file", os.devnull, "-b", broker.bootstrap, "--timeout", "10m"]) == 1
    assert "(INVALID_REPLICATION_FACTOR)" in capsys.readouterr().err


def test_a_leader_that_cannot_be_reached_ends_it_in_time(tmp_path, capsys):
    """Metadata comes from a broker that can be reached, and names one that cannot."""
    nowhere = HeldPort()
    with Barnabas(advertised_listeners=f"PLAINTEXT://{nowhere.address}") as broker:
        broker.create_topic("t")
        assert main(["consume", "t", "-b", broker.bootstrap_servers, "--timeout", "500ms"]) == 1
    assert capsys.readouterr().err == f"barnabas: cannot connect to {nowhere.address}: Connection refused\n"


def test_an_offset_out_of_range_is_reported_and_skipped(command, produce, topic):
    produce(topic, *"abc", options=("--partition", "0"))
    result = command("consume", topic, "-e", "--partition", "0", "--offset", "2", "--max-messages", "1")
    assert (result.out, result.err) == ("c\n", "")
    result = command("consume", topic, "-e", "--partition", "0", "--offset", "99")
    assert result.out == ""


def test_several_topics(done, produce, topic):
    produce(topic, "a")
    produce(f"{topic}-b", "b")
    lines = done("consume", topic, f"{topic}-b", "-e", "--format", "%t=%v").splitlines()
    assert sorted(lines) == [f"{topic}-b=b", f"{topic}=a"]


def test_what_is_not_there_cannot_be_read(command, produce, topic):
    assert "there is no such topic" in command("consume", "missing").err
    assert "there is no such topic" in command("consume", "missing", "--group", "g").err
    produce(topic, "a")
    result = command("consume", topic, "--partition", "7")
    assert result.status == 1
    assert f"partition {topic}-7: " in result.err


def test_a_line_without_key_ends_it_and_what_came_before_is_written(command, done, topic, tmp_path):
    file = tmp_path / "lines"
    file.write_text("a:1\nb:2\nc\nd:4\n")
    result = command("produce", topic, "--file", file, "--key-separator", ":")
    assert result.status == 1
    problem = "line 3 has no ':' between a key and a value; 2 records were written before that"
    assert result.err == f"barnabas: {problem}\n"
    assert sorted(done("consume", topic, "-e").split()) == ["1", "2"]


def test_a_batch_that_the_topic_does_not_take(command, done, topic, tmp_path):
    done("topics", "create", topic, "--config", "max.message.bytes=100")
    file = tmp_path / "lines"
    file.write_text("short\n" + "x" * 1000 + "\n")
    result = command("produce", topic, "--file", file, "--batch-bytes", "50")
    assert result.status == 1
    assert "(MESSAGE_TOO_LARGE)" in result.err


def test_what_is_written_is_read_at_once_until_ctrl_c(served, done, topic):
    """A line typed into one command comes out of another, although neither has ended."""
    done("topics", "create", topic)
    with (
        started(served, "consume", topic, "-v") as consumer,
        started(served, "produce", topic, stdin=subprocess.PIPE) as producer,
    ):
        assert consumer.stderr.readline().startswith("barnabas: reading ")
        for line in ("one\n", "two\n"):
            producer.stdin.write(line)
            producer.stdin.flush()
            assert consumer.stdout.readline() == line
        producer.stdin.close()
        assert producer.wait(60) == 0
        assert ended(consumer) == (0, "", "")


def test_a_reader_that_has_enough_ends_it_quietly(served, produce, topic):
    produce(topic, *("x" * 100 for _ in range(10_000)))
    with started(served, "consume", topic, "--from-beginning") as consumer:
        assert consumer.stdout.readline() == "x" * 100 + "\n"
        consumer.stdout.close()
        assert consumer.wait(60) == 0
        assert consumer.stderr.read() == ""


def test_a_pipe_into_produce(served, done, topic):
    lines = [str(number) for number in range(50_000)]
    with started(served, "produce", topic, "--partition", "0", stdin=subprocess.PIPE) as producer:
        assert producer.communicate("\n".join(lines), timeout=60) == ("", "")
        assert producer.returncode == 0
    assert done("consume", topic, "-e").splitlines() == lines


def test_a_bar_shows_how_far_a_bulk_load_is(served, topic, tmp_path):
    file = tmp_path / "lines"
    file.write_text("x\n" * 1000)
    terminal, end = pty.openpty()
    with started(served, "produce", topic, "--file", str(file), stderr=end) as producer:
        os.close(end)
        assert producer.wait(60) == 0
    shown = os.read(terminal, 65536).decode()
    os.close(terminal)
    assert "1,000 records, " in shown


def test_a_broker_that_comes_back_has_every_line_once(tmp_path, capsys):
    """It is killed while lines arrive. What was not acknowledged is sent again, and reading continues where it was."""
    with BrokerProcess(tmp_path / "data") as broker:
        main(["topics", "create", "t", "--bootstrap", broker.bootstrap])
        with (
            started(broker, "produce", "t", stdin=subprocess.PIPE) as producer,
            started(broker, "consume", "t", "--from-beginning") as consumer,
        ):
            for begin in range(0, 3000, 1000):
                producer.stdin.write("".join(f"{number}\n" for number in range(begin, begin + 1000)))
                producer.stdin.flush()
                assert consumer.stdout.readline() == f"{begin}\n"
                broker.kill()
                broker.start()
                for number in range(begin + 1, begin + 1000):
                    assert consumer.stdout.readline() == f"{number}\n"
            producer.stdin.close()
            assert producer.wait(60) == 0
        capsys.readouterr()
        assert main(["consume", "t", "-e", "--bootstrap", broker.bootstrap]) == 0
    assert capsys.readouterr().out.splitlines() == [str(number) for number in range(3000)]
