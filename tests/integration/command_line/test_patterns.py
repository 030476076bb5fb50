"""`barnabas consume --regex`: topics that match, both existing and new ones."""

import pytest

from tests.support.command import ended, started


@pytest.fixture
def family(done, produce, topic):
    """Two topics that the pattern matches, and one that it does not."""
    for suffix in ("-a", "-b", ""):
        produce(f"{topic}{suffix}", f"in {topic}{suffix}")
    return f"{topic}-.*"


def test_whole_names_match(done, family, topic):
    lines = done("consume", "--regex", family, "-e", "-f", "%t").split()
    assert sorted(lines) == [f"{topic}-a", f"{topic}-b"]


def test_a_group_reads_them(done, family, topic, group):
    assert len(done("consume", "-r", family, "-e", "--group", group).splitlines()) == 2
    assert done("consume", "-r", family, "-e", "--group", group) == ""


def test_nothing_matches(command, topic):
    result = command("consume", "-r", f"{topic}-.*", "-e")
    assert (result.status, result.err) == (1, f"barnabas: no topic matches '{topic}-.*'\n")


@pytest.mark.parametrize("in_group", [False, True], ids=["alone", "in a group"])
def test_a_topic_that_appears_is_read_from_its_beginning(served, produce, topic, group, in_group):
    options = ["--group", group] if in_group else []
    with started(served, "consume", "--regex", f"{topic}-.*", *options) as consumer:
        assert consumer.stderr.readline() == f"barnabas: no topic matches '{topic}-.*' yet; waiting for one\n"
        for suffix in "ab":
            produce(f"{topic}-{suffix}", f"first in {suffix}")
            assert consumer.stdout.readline() == f"first in {suffix}\n"
        assert ended(consumer) == (0, "", "")


def test_a_topic_that_is_deleted_is_not_missed(served, done, produce, family, topic):
    with started(served, "consume", "--regex", family, "-v") as consumer:
        assert consumer.stderr.readline().startswith("barnabas: reading ")
        done("topics", "delete", f"{topic}-a")
        produce(f"{topic}-c", "new")
        assert consumer.stdout.readline() == "new\n"
        produce(f"{topic}-b", "old")
        assert consumer.stdout.readline() == "old\n"
        assert ended(consumer)[0] == 0


def test_partitions_that_are_added_are_read(served, done, produce, topic):
    done("topics", "create", topic, "--partitions", 1)
    with started(served, "consume", topic, "-v") as consumer:
        assert consumer.stderr.readline() == f"barnabas: reading {topic}-0 from 0\n"
        done("topics", "alter", topic, "--partitions", 2)
        produce(topic, "there", options=("-p", "1"))
        assert consumer.stdout.readline() == "there\n"
        assert ended(consumer)[0] == 0
