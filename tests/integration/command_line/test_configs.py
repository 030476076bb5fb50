"""`barnabas configs` against a real broker."""

import pytest

from tests.support.command import columns


@pytest.fixture
def settings(from_json):
    """The settings of a resource, each with its value and its source."""

    def settings(*arguments):
        found = from_json("configs", "describe", *arguments)
        return {each["name"]: (each["value"], each["source"]) for each in found}

    return settings


def test_settings_of_a_topic_are_changed_and_taken_back(done, settings, topic):
    done("topics", "create", topic, "--config", "retention.ms=60000")
    said = done("configs", "set", "topic", topic, "segment.bytes=1048576", "cleanup.policy=compact,delete")
    assert said == f"set segment.bytes=1048576, set cleanup.policy=compact,delete on topic '{topic}'\n"
    found = settings("topic", topic)
    assert found["retention.ms"] == ("60000", "topic")
    assert found["cleanup.policy"] == ("compact,delete", "topic")
    assert found["max.message.bytes"] == ("1048588", "default")
    done("configs", "unset", "topics", topic, "cleanup.policy", "segment.bytes")
    assert settings("topic", topic, "cleanup.policy") == {"cleanup.policy": ("delete", "default")}


def test_the_list_has_what_was_set_and_where(served, done, from_json, topic):
    done("topics", "create", topic, "--config", "retention.ms=60000")
    done("configs", "set", "broker", "default", "log.cleaner.threads=2")
    done("configs", "set", "broker", "0", "log.cleaner.threads=3")
    try:
        listed = {
            (each["type"], each["resource"], each["name"]): (each["value"], each["source"])
            for each in from_json("configs", "list")
        }
    finally:
        for broker in ("default", "0"):
            done("configs", "unset", "broker", broker, "log.cleaner.threads")
    assert listed["topic", topic, "retention.ms"] == ("60000", "topic")
    assert listed["broker", "default", "log.cleaner.threads"] == ("2", "cluster")
    assert listed["broker", "0", "log.cleaner.threads"] == ("3", "broker")
    assert listed["broker", "0", "log.dirs"] == (str(served.data), "server.properties")
    assert {row["TYPE"] for row in columns(done("configs", "list", "topic"))} == {"topic"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("set", "topic", "missing", "retention.ms=1"), "topic 'missing': "),
        (("describe", "topic", "missing"), "topic 'missing': "),
        (("describe", "broker", "9"), "broker 9: there is no such broker"),
        (("describe", "broker", "x"), "name a broker by its id, or use 'default'"),
        (("describe", "broker", "0", "no.such.setting"), "broker '0' has no setting 'no.such.setting'"),
        (("set", "broker", "0", "log.dirs=/elsewhere"), "broker '0': "),
    ],
)
def test_what_cannot_be_done_is_one_sentence(command, arguments, said):
    result = command("configs", *arguments)
    assert result.status == 1
    assert said in result.err
    assert len(result.err.splitlines()) == 1


def test_a_value_that_is_wrong_changes_nothing(command, done, settings, topic):
    done("topics", "create", topic)
    result = command("configs", "set", "topic", topic, "segment.bytes=1048576", "retention.ms=soon")
    assert (result.status, "(INVALID_CONFIG)" in result.err) == (1, True)
    assert settings("topic", topic)["segment.bytes"][1] == "default"
