"""`barnabas topics` against a real broker."""

from barnabas.command import main
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
    done(
        "topics",
        "alter",
        topic,
        "--partitions",
        5,
        "--config",
        "segment.bytes=1048576",
        "--delete-config",
        "retention.ms",
    )
    (described,) = from_json("topics", "describe", topic)
    assert len(described["partitions"]) == 5
    assert [(each["name"], each["value"]) for each in described["configs"]] == [("segment.bytes", "1048576")]


def test_the_oldest_records_are_deleted(done, from_json, produce, topic):
    produce(topic, *"abcdef", options=("-p", "0"))
    produce(topic, *"xyz", options=("-p", "1"))
    assert columns(done("topics", "delete-records", topic, "--before", "-2", "-p", "0,1")) == [
        {"TOPIC": topic, "PARTITION": "0", "LOG-START-OFFSET": "4", "LOG-END-OFFSET": "6"},
        {"TOPIC": topic, "PARTITION": "1", "LOG-START-OFFSET": "1", "LOG-END-OFFSET": "3"},
    ]
    assert done("consume", topic, "-e", "-p", "0").split() == ["e", "f"]
    deleted = from_json("topics", "delete-records", topic, "--before", "latest")
    assert [(row["log_start_offset"], row["log_end_offset"]) for row in deleted] == [(6, 6), (3, 3), (0, 0)]
    assert done("consume", topic, "-e") == ""


def test_records_are_deleted_by_their_age(done, produce, topic):
    for hour in (10, 11, 12):
        produce(topic, str(hour), options=("-p", "0", "--timestamp", f"2026-01-31T{hour}:00"))
    done("topics", "delete-records", topic, "--before", "@2026-01-31T11:30")
    assert done("consume", topic, "-e").split() == ["12"]


def test_records_that_are_not_there_cannot_be_deleted(command, produce, topic):
    produce(topic, "a", options=("-p", "0"))
    result = command("topics", "delete-records", topic, "--before", "99", "-p", "0")
    assert (result.status, "(OFFSET_OUT_OF_RANGE)" in result.err) == (1, True)
    assert "there is no such topic" in command("topics", "delete-records", topic, "--before", "0", "-p", "7").err


def test_records_of_a_compacted_topic_cannot_be_deleted(command, done, topic):
    done("topics", "create", topic, "--config", "cleanup.policy=compact")
    result = command("topics", "delete-records", topic, "--before", "latest")
    assert (result.status, "only if the topic's cleanup.policy includes delete" in result.err) == (1, True)


def test_what_cannot_be_done_to_a_topic_is_reported_with_kafkas_error(command, done, topic):
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


def test_existing_and_missing_topics_need_not_be_errors(done, from_json, topic):
    done("topics", "create", topic)
    assert "nothing to do" in done("topics", "create", topic, "--if-not-exists")
    done("topics", "delete", topic)
    assert from_json("topics", "delete", topic, "--if-exists") == [{"topic": topic, "deleted": False, "error": None}]


def test_a_broker_that_is_not_there_is_named(capsys):
    assert main(["topics", "list", "--bootstrap", "127.0.0.1:1"]) == 1
    assert capsys.readouterr().err == "barnabas: cannot connect to 127.0.0.1:1: Connection refused\n"
