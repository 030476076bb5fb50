"""`barnabas topics` against a real broker."""

from broker.cli import main
from tests.support.command import columns


def test_topics_are_created_listed_described_and_deleted(done, from_json, topic):
    settings = ("--config", "retention.ms=60000", "--config", "cleanup.policy=compact")
    assert done("topics", "create", topic, "--partitions", 2, *settings) == f"created topic '{topic}'\n"
    (listed,) = [row for row in columns(done("topics", "list")) if row["TOPIC"] == topic]
    assert (listed["PARTITIONS"], listed["REPLICATION-FACTOR"], listed["INTERNAL"]) == ("2", "1", "no")
    (described,) = from_json("topics", "describe", topic)
    assert [partition["log_end_offset"] for partition in described["partitions"]] == [0, 0]
    assert {each["name"]: each["value"] for each in described["configs"]} == {
        "retention.ms": "60000",
        "cleanup.policy": "compact",
    }
    assert done("topics", "delete", topic) == f"deleted topic '{topic}'\n"
    assert topic not in done("topics", "list")


def test_a_description_for_people(done, produce, topic):
    produce(topic, "a", "b", "c", options=("--partition", "1"))
    title, *table = done("topics", "describe", topic).splitlines()
    assert title.startswith(f"Topic {topic}  (id ")
    assert [(row["PARTITION"], row["LOG-END-OFFSET"]) for row in columns("\n".join(table))] == [
        ("0", "0"),
        ("1", "3"),
        ("2", "0"),
    ]


def test_all_settings_and_where_they_come_from(done, from_json, topic):
    done("topics", "create", topic, "--config", "retention.ms=60000")
    (described,) = from_json("topics", "describe", topic, "--all-configs")
    settings = {each["name"]: (each["value"], each["source"]) for each in described["configs"]}
    assert settings["retention.ms"] == ("60000", "topic")
    assert settings["max.message.bytes"] == ("1048588", "default")


def test_topics_are_altered(done, from_json, topic):
    done("topics", "create", topic, "--config", "retention.ms=60000")
    done("topics", "alter", topic, "--partitions", 5, "--set", "segment.bytes=1048576", "--unset", "retention.ms")
    (described,) = from_json("topics", "describe", topic)
    assert len(described["partitions"]) == 5
    assert [(each["name"], each["value"]) for each in described["configs"]] == [("segment.bytes", "1048576")]


def test_what_cannot_be_done_to_a_topic_is_said_with_kafkas_word(command, done, topic):
    done("topics", "create", topic)
    for arguments, word in (
        (("create", topic), "TOPIC_ALREADY_EXISTS"),
        (("create", "no/topic"), "INVALID_TOPIC_EXCEPTION"),
        (("create", f"{topic}-b", "--config", "no.such=1"), "INVALID_CONFIG"),
        (("alter", topic, "--partitions", "1"), "INVALID_PARTITIONS"),
        (("describe", "missing"), "UNKNOWN_TOPIC_OR_PARTITION"),
        (("delete", "missing"), "UNKNOWN_TOPIC_OR_PARTITION"),
    ):
        result = command("topics", *arguments)
        assert result.status == 1
        assert result.err.startswith("barnabas: topic ")
        assert f"({word})" in result.err
        assert len(result.err.splitlines()) == 1


def test_one_topic_that_fails_does_not_keep_the_others(command, done, topic):
    done("topics", "create", topic)
    result = command("topics", "create", topic, f"{topic}-b")
    assert result.status == 1
    assert result.out == f"created topic '{topic}-b'\n"


def test_what_is_there_already_or_gone_already_can_be_no_error(done, from_json, topic):
    done("topics", "create", topic)
    assert "nothing to do" in done("topics", "create", topic, "--if-not-exists")
    done("topics", "delete", topic)
    assert from_json("topics", "delete", topic, "--if-exists") == [{"topic": topic, "deleted": False, "error": None}]


def test_a_broker_that_is_not_there_is_named(capsys):
    assert main(["topics", "list", "--bootstrap", "127.0.0.1:1"]) == 1
    assert capsys.readouterr().err == "barnabas: cannot connect to 127.0.0.1:1: Connection refused\n"
