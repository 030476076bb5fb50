"""`barnabas groups` against a real broker, and `barnabas consume` as a member of one."""

import json
import os
import pty
import signal

import pytest

from tests.support.command import columns, ended, partitions_read, started
from tests.support.group_members import Members
from tests.support.group_side import GroupSide


def test_a_group_reads_each_record_once_and_goes_on_where_it_was(done, produce, from_json, topic, group):
    produce(topic, *"abc")
    assert sorted(done("consume", topic, "--group", group, "-e").split()) == ["a", "b", "c"]
    assert done("consume", topic, "--group", group, "-e") == ""
    produce(topic, "d")
    assert done("consume", topic, "--group", group, "-e") == "d\n"
    rows = from_json("groups", "describe", group)
    assert sum(row["current_offset"] for row in rows) == 4
    assert {row["lag"] for row in rows} == {0}
    (state,) = from_json("groups", "describe", group, "--state")
    assert (state["state"], state["members"]) == ("Empty", 0)


def test_a_group_that_stops_in_the_middle_goes_on_there(done, produce, topic, group):
    produce(topic, *"abcdef", options=("--partition", "0"))
    assert done("consume", topic, "--group", group, "-e", "--max-messages", "2").split() == ["a", "b"]
    assert done("consume", topic, "--group", group, "-e").split() == ["c", "d", "e", "f"]


def test_two_members_share_and_one_that_leaves_gives_back(served, done, produce, from_json, topic, group):
    done("topics", "create", topic, "--partitions", 3)
    arguments = ("consume", topic, "--group", group, "-v", "--from-beginning")
    with started(served, *arguments) as first, started(served, *arguments) as second:
        shares = {first: partitions_read(first), second: partitions_read(second)}
        while sorted(map(len, shares.values())) != [1, 2]:
            # The first member learns from its next heartbeat that the second has joined.
            alone = max(shares, key=lambda process: len(shares[process]))
            shares[alone] = partitions_read(alone)
        assert sorted(index for share in shares.values() for index in share) == [0, 1, 2]
        rows = from_json("groups", "describe", group, "--members")
        assert sorted(row["partitions"] for row in rows) == [1, 2]
        assert {row["client_id"] for row in rows} == {"barnabas"}
        status, _, err = ended(second, signal.SIGTERM)
        assert (status, err) == (0, "")
        assert partitions_read(first) == [0, 1, 2]
        produce(topic, *"abc")
        assert sorted(first.stdout.readline().strip() for _ in range(3)) == ["a", "b", "c"]
        assert ended(first) == (0, "", "")
    (state,) = from_json("groups", "describe", group, "--state")
    assert (state["state"], state["members"]) == ("Empty", 0)


@pytest.mark.parametrize("library", ["kafka-python", "confluent"])
@pytest.mark.parametrize("ours_leads", [True, False], ids=["we lead", "they lead"])
def test_it_is_in_one_group_with_other_clients(served, done, produce, from_json, topic, group, library, ours_leads):
    done("topics", "create", topic, "--partitions", 4)
    with Members(served.bootstrap, group, topic) as theirs:
        if not ours_leads:
            theirs.start(library)
            theirs.wait_for([0, 1, 2, 3])
        with started(served, "consume", topic, "--group", group, "-v", "--from-beginning") as ours:
            share = partitions_read(ours)
            if ours_leads:
                assert share == [0, 1, 2, 3]
                theirs.start(library)
                share = partitions_read(ours)
            theirs.wait_for([index for index in range(4) if index not in share])
            assert len(share) == 2
            for index in range(4):
                produce(topic, f"to {index}", options=("--partition", index))
            assert sorted(ours.stdout.readline().strip() for _ in share) == [f"to {index}" for index in share]
            assert sorted(theirs.read.get(timeout=60) for _ in range(2)) == [
                f"to {index}" for index in range(4) if index not in share
            ]
            status, out, err = ended(ours)
            assert (status, out) == (0, "")
            # kafka-python may have joined once more of its own accord, after which the same partitions are read on.
            assert all(line.startswith("barnabas: reading ") for line in err.splitlines())
        theirs.wait_for([0, 1, 2, 3])


def test_a_group_with_a_member_is_described(served, done, produce, from_json, topic, group):
    produce(topic, *"abc", options=("--partition", "1"))
    with started(served, "consume", topic, "--group", group, "--from-beginning") as member:
        assert [member.stdout.readline() for _ in "abc"] == ["a\n", "b\n", "c\n"]
        rows = columns(done("groups", "describe", group))
        assert [row["PARTITION"] for row in rows] == ["0", "1", "2"]
        assert {row["HOST"] for row in rows} == {"/127.0.0.1"}
        assert {row["CLIENT-ID"] for row in rows} == {"barnabas"}
        assert all(row["CONSUMER-ID"].startswith("barnabas-") for row in rows)
        assert [row["LOG-END-OFFSET"] for row in rows] == ["0", "3", "0"]
        (described,) = from_json("groups", "describe", group, "--members")
        assert described["assignment"] == {topic: [0, 1, 2]}
        (state,) = from_json("groups", "describe", group, "--state")
        assert (state["state"], state["assignor"], state["members"]) == ("Stable", "range", 1)
        assert state["coordinator"] == served.bootstrap
        assert [row["state"] for row in from_json("groups", "list") if row["group"] == group] == ["Stable"]


def test_a_group_without_members_is_shown_in_one_line(done, produce, topic, group):
    produce(topic, "a", options=("-p", "0"))
    done("consume", topic, "--group", group, "-e")
    head, *table = done("groups", "describe", group).splitlines()
    assert head == f"Group '{group}' has no active members."
    assert [row["PARTITION"] for row in columns("\n".join(table))] == ["0"]


def test_an_unknown_group_is_reported(command, group):
    for arguments in (("describe", group), ("delete", group)):
        result = command("groups", *arguments)
        assert result.status == 1
        assert result.err == f"barnabas: group '{group}': there is no such group (GROUP_ID_NOT_FOUND)\n"


def test_groups_without_members_are_deleted(served, command, done, produce, topic, group):
    produce(topic, "a")
    with started(served, "consume", topic, "--group", group, "--from-beginning") as member:
        member.stdout.readline()
        result = command("groups", "delete", group)
        assert result.status == 1
        assert "the group still has members (NON_EMPTY_GROUP)" in result.err
        ended(member)
    assert done("groups", "delete", group) == f"deleted group '{group}'\n"
    assert group not in done("groups", "list")


def test_a_description_outlives_the_topic(done, produce, from_json, topic, group):
    """Whether its offsets are dropped with a topic or later, a group can be looked at."""
    produce(topic, "a", options=("--partition", "0"))
    produce(f"{topic}-b", "b", options=("--partition", "0"))
    done("consume", topic, f"{topic}-b", "--group", group, "-e")
    done("topics", "delete", topic)
    rows = {(row["topic"], row["partition"]): row["lag"] for row in from_json("groups", "describe", group)}
    assert rows[f"{topic}-b", 0] == 0
    assert rows.get((topic, 0)) is None


def test_watching_a_group(served, done, produce, topic, group):
    produce(topic, "a", options=("--partition", "0"))
    done("consume", topic, "--group", group, "-e")
    with started(served, "groups", "describe", group, "--watch", "--interval", "0.01", "--json") as watch:
        assert json.loads(watch.stdout.readline())[0]["lag"] == 0
        produce(topic, "b", options=("--partition", "0"))
        while json.loads(watch.stdout.readline())[0]["lag"] == 0:
            pass
        status, _, err = ended(watch)
        assert (status, err) == (0, "")


def test_watching_on_a_terminal_draws_over_the_last_table(served, done, produce, topic, group):
    produce(topic, "a", options=("--partition", "0"))
    done("consume", topic, "--group", group, "-e")
    terminal, end = pty.openpty()
    with started(served, "groups", "describe", group, "--watch", "--interval", "0.01", stdout=end) as watch:
        os.close(end)
        shown = b""
        while shown.count(b"\x1b[H") < 3:
            shown += os.read(terminal, 65536)
        assert ended(watch)[0] == 0
    os.close(terminal)
    first, second, *_ = shown.split(b"\x1b[H")[1:]
    assert b"CURRENT-OFFSET" in first
    assert second == first


def test_a_share_group(served, done, command, produce, from_json, topic, group):
    done("topics", "create", topic, "--partitions", 2)
    produce(topic, *"abc", options=("--partition", "0"))
    side = GroupSide(served.port)
    side.begin(group, 1)
    side.share("A", 0, [topic])
    side.initialized(**{topic: 2})
    listed = {row["group"]: row for row in from_json("groups", "list")}
    assert listed[group] == {"group": group, "type": "share", "protocol_type": "share", "state": "Stable"}
    (state,) = from_json("groups", "describe", group, "--state")
    assert (state["assignor"], state["state"], state["members"]) == ("simple", "Stable", 1)
    (member,) = from_json("groups", "describe", group, "--members")
    assert (member["consumer_id"], member["host"]) == ("A", "/127.0.0.1")
    reset = ("groups", "reset-offsets", group, "--topic", topic, "--to-earliest", "--execute")
    assert "once all of them have left" in command(*reset).err
    side.share("A", -1)
    rows = from_json("groups", "describe", group)
    assert [(row["partition"], row["current_offset"], row["lag"]) for row in rows] == [(0, None, None), (1, None, None)]
    done(*reset)
    rows = from_json("groups", "describe", group)
    assert [(row["partition"], row["current_offset"], row["lag"]) for row in rows] == [(0, 0, 3), (1, 0, 0)]
    done("groups", "reset-offsets", group, "--topic", f"{topic}:0", "--shift-by", 2, "--execute")
    assert [row["lag"] for row in from_json("groups", "describe", group)] == [1, 0]
    done("groups", "delete", group)
    assert group not in {row["group"] for row in from_json("groups", "list")}
    side.close()
