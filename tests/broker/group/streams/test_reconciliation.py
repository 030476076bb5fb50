"""The steps of one member towards its target."""

import pytest

from barnabas.broker.group.refused import Refused
from barnabas.broker.group.streams.member import MemberState, StreamsMember
from barnabas.broker.group.streams.reconciliation import reconcile
from barnabas.broker.group.streams.tasks import AssignedTasks, Tasks
from barnabas.protocol.errors import ErrorCode

NOTHING = Tasks({}, {}, {})


class Owners:
    """Task 0 of subtopology "0": the process that has it as an active task, and those that have a copy."""

    def __init__(self, active=None, copies=()):
        self.active = active
        self.copies = copies

    def active_in(self, subtopology, partition):
        return self.active

    def copied_in(self, subtopology, partition):
        return self.copies


def active(*partitions):
    return Tasks({"0": frozenset(partitions)} if partitions else {}, {}, {})


def standby(*partitions):
    return Tasks({}, {"0": frozenset(partitions)}, {})


def member(**fields):
    return StreamsMember("a", epoch=2, process_id="mine", **fields)


@pytest.mark.parametrize(
    ("owners", "is_given"),
    [
        (Owners(), True),
        (Owners(active="mine"), False),
        (Owners(active="other"), False),
        (Owners(copies=["mine"]), False),
        (Owners(copies=["other"]), True),
    ],
)
def test_an_active_task_that_somebody_has(owners, is_given):
    moved = reconcile(member(), 3, active(0), owners, NOTHING)
    assert (moved.epoch, moved.previous_epoch) == (3, 2)
    assert moved.state is (MemberState.STABLE if is_given else MemberState.UNRELEASED_TASKS)
    assert moved.assigned.active == ({"0": {0: 3}} if is_given else {})


@pytest.mark.parametrize(
    ("owners", "is_given"),
    [
        (Owners(), True),
        (Owners(active="mine"), False),
        (Owners(active="other"), True),
        (Owners(copies=["mine"]), False),
        (Owners(copies=["other"]), True),
    ],
)
def test_a_standby_task_that_somebody_has(owners, is_given):
    moved = reconcile(member(), 3, standby(0), owners, NOTHING)
    assert moved.state is (MemberState.STABLE if is_given else MemberState.UNRELEASED_TASKS)
    assert moved.assigned.standby == ({"0": frozenset([0])} if is_given else {})


def test_what_it_has_it_keeps_since_it_got_it():
    had = member(assigned=AssignedTasks({"0": {0: 1, 1: 2}}, {}, {}))
    moved = reconcile(had, 3, active(0), Owners(active="mine"), active(0))
    assert (moved.state, moved.assigned.active) == (MemberState.STABLE, {"0": {0: 1}})


def test_it_stays_in_its_epoch_until_it_has_let_go():
    had = member(assigned=AssignedTasks({"0": {0: 1, 1: 2}}, {}, {}))
    asked = reconcile(had, 3, active(0), Owners(active="mine"), None)
    assert (asked.epoch, asked.state) == (2, MemberState.UNREVOKED_TASKS)
    assert (asked.assigned.active, asked.revoking.active) == ({"0": {0: 1}}, {"0": {1: 2}})
    assert reconcile(asked, 3, active(0), Owners(active="mine"), active(0, 1)) is asked
    done = reconcile(asked, 3, active(0), Owners(active="mine"), active(0))
    assert (done.epoch, done.state, done.revoking.is_empty) == (3, MemberState.STABLE, True)


def test_a_state_that_only_a_newer_coordinator_knows():
    strange = member(state=MemberState.UNKNOWN)
    for owned in (None, active(0)):
        with pytest.raises(Refused) as refused:
            reconcile(strange, 3, active(0), Owners(), owned)
        assert refused.value.error == ErrorCode.FENCED_MEMBER_EPOCH
    assert reconcile(strange, 3, active(0), Owners(), NOTHING).state is MemberState.STABLE
