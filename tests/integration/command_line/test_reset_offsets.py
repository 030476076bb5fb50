"""`barnabas groups reset-offsets` against a real broker."""

import pytest

from tests.support.command import columns, started


@pytest.fixture
def read_group(done, produce, topic, group):
    """A group that has read six of the ten records of partition 0, and both of partition 1."""
    produce(topic, *"abcdef", options=("--partition", "0"))
    produce(topic, *"xy", options=("--partition", "1"))
    done("consume", topic, "--group", group, "-e")
    produce(topic, *"ghij", options=("--partition", "0"))
    return group


@pytest.mark.parametrize(
    ("arguments", "offset"),
    [
        (["--to-earliest"], 0),
        (["--to-latest"], 10),
        (["--to-current"], 6),
        (["--to-offset", "4"], 4),
        (["--to-offset", "99"], 10),
        (["--shift-by", "2"], 8),
        (["--shift-by", "-2"], 4),
        (["--shift-by", "-99"], 0),
        (["--to-datetime", "2020-01-01T00:00:00.000"], 0),
        (["--to-datetime", "2100-01-01T00:00:00+01:00"], 10),
        (["--by-duration", "P1D"], 0),
        (["--by-duration", "PT0S"], 10),
        (["--by-duration", "1d12h"], 0),
    ],
    ids=lambda given: " ".join(given) if isinstance(given, list) else None,
)
def test_every_way_to_reset(command, from_json, read_group, topic, arguments, offset):
    scope = ("--topic", f"{topic}:0")
    shown = command("groups", "reset-offsets", read_group, *scope, *arguments)
    (row,) = columns(shown.out)
    assert (row["CURRENT-OFFSET"], row["NEW-OFFSET"]) == ("6", str(offset))
    assert shown.err == "barnabas: nothing was changed; add --execute to set these offsets\n"
    assert offsets(from_json, read_group) == {0: 6, 1: 2}
    from_json("groups", "reset-offsets", read_group, *scope, *arguments, "--execute")
    assert offsets(from_json, read_group) == {0: offset, 1: 2}


def offsets(from_json, group):
    return {row["partition"]: row["current_offset"] for row in from_json("groups", "describe", group)}


def test_all_topics_and_files(command, done, from_json, read_group, tmp_path):
    exported = command("groups", "reset-offsets", read_group, "--all-topics", "--to-earliest", "--export").out
    file = tmp_path / "offsets.csv"
    file.write_text(exported)
    done("groups", "reset-offsets", read_group, "--from-file", file, "--execute")
    assert {row["current_offset"] for row in from_json("groups", "describe", read_group)} == {0}


def test_a_group_can_begin_with_its_offsets(done, produce, topic, group):
    produce(topic, *"abc", options=("--partition", "0"))
    done("groups", "reset-offsets", group, "--topic", f"{topic}:0", "--to-offset", "1", "--execute")
    assert done("consume", topic, "--group", group, "-e").split() == ["b", "c"]


def test_offsets_are_not_reset_under_a_reader(served, command, produce, topic, group):
    produce(topic, "a")
    with started(served, "consume", topic, "--group", group, "--from-beginning") as member:
        member.stdout.readline()
        result = command("groups", "reset-offsets", group, "--topic", topic, "--to-earliest", "--execute")
        assert result.status == 1
        assert (
            f"group '{group}' is Stable with 1 members: offsets can be reset once all of them have left" in result.err
        )


def test_what_cannot_be_reset_is_reported(command, produce, topic, group):
    produce(topic, "a")
    for arguments, said in (
        (["--topic", "missing", "--to-earliest"], "there is no such topic"),
        (["--topic", f"{topic}:9", "--to-earliest"], f"partition {topic}-9: "),
        (["--topic", f"{topic}:0", "--shift-by", "1"], f"the group has no offset in {topic}-0"),
    ):
        result = command("groups", "reset-offsets", group, *arguments)
        assert result.status == 1
        assert said in result.err
