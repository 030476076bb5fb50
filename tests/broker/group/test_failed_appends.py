"""What a coordinator cannot write, for example while too few replicas are in sync, is not forgotten."""

import pytest

from barnabas.protocol.errors import ErrorCode
from tests.broker.group.consumer import harness as consumer
from tests.broker.group.share import harness as share
from tests.broker.group.streams import harness as streams

KINDS = {
    "consumer": (consumer, lambda group: group.join("a", "t")),
    "share": (share, lambda group: group.join("a", "t")),
    "streams": (streams, lambda group: group.join("a")),
}


@pytest.fixture(params=KINDS)
def kind(request):
    return KINDS[request.param]


@pytest.fixture
def group(kind):
    harness, _ = kind
    return harness.group_of(("t", 2))


@pytest.fixture
def join(kind, group):
    """Has the member "a" join."""
    _, join = kind
    return lambda: join(group)


@pytest.fixture
def members(group):
    return lambda: set(group.group.members)


@pytest.fixture
def writable(group):
    """Says whether the coordinator can write."""

    def now(is_writable):
        group.coordinator.append_error = ErrorCode.NONE if is_writable else ErrorCode.COORDINATOR_NOT_AVAILABLE

    return now


def test_a_silent_member_is_removed_as_soon_as_possible(group, join, members, writable):
    join()
    writable(False)
    group.advance(45_000)
    assert members() == {"a"}
    writable(True)
    group.advance(500)
    assert members() == set()


def test_a_member_whose_leaving_was_not_written_is_removed_when_it_falls_silent(group, join, members, writable):
    join()
    writable(False)
    group.leave("a")
    writable(True)
    group.advance(44_999)
    assert members() == {"a"}
    group.advance(1)
    assert members() == set()


def test_a_member_that_could_not_be_removed_and_is_heard_again_stays(group, join, members, writable):
    join()
    writable(False)
    group.advance(45_000)
    writable(True)
    group.beat("a")
    group.advance(44_999)
    assert members() == {"a"}
    group.advance(1)
    assert members() == set()


def test_a_member_whose_joining_was_not_written_may_join_again(group, join, members, writable):
    join()
    group.leave("a")
    writable(False)
    join()
    writable(True)
    group.advance(60_000)
    join()
    assert members() == {"a"}
    group.advance(45_000)
    assert members() == set()
