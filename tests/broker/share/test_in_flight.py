import random
from itertools import pairwise

import pytest

from barnabas.broker.share.in_flight import (
    Acknowledgement,
    AcknowledgeType,
    Acquired,
    Acquisition,
    FetchedBatch,
    InFlight,
    Limits,
    Transition,
)
from barnabas.broker.share.state_batches import DeliveryState, StateBatch
from barnabas.protocol.errors import ErrorCode

ACCEPT, RELEASE, REJECT, RENEW = (
    AcknowledgeType.ACCEPT,
    AcknowledgeType.RELEASE,
    AcknowledgeType.REJECT,
    AcknowledgeType.RENEW,
)
AVAILABLE, ACQUIRED, ACKNOWLEDGED, ARCHIVED = (
    DeliveryState.AVAILABLE,
    DeliveryState.ACQUIRED,
    DeliveryState.ACKNOWLEDGED,
    DeliveryState.ARCHIVED,
)
LIMITS = Limits(delivery_count=5, record_locks=100)


def batches(*sizes, first=0):
    """Record batches one after the other."""
    found = []
    for size in sizes:
        found.append(FetchedBatch(first, first + size - 1))
        first += size
    return found


def acquire(in_flight, fetched, member="m", most=500, *, size=500, exact=False, deadline=30.0, limits=LIMITS):
    asked = Acquisition(member, most, size, exact, deadline)
    return in_flight.acquire(asked, fetched, in_flight.next_fetch_offset(), limits)


def acknowledge(in_flight, first, last, *types, member="m", limits=LIMITS, deadline=30.0):
    """Acknowledge, and have it written; the error if it is refused."""
    decided = in_flight.acknowledge(member, [Acknowledgement(first, last, types)], limits, deadline)
    if isinstance(decided, Transition):
        in_flight.complete(decided)
        return ErrorCode.NONE
    return decided


def test_whole_batches_are_acquired():
    in_flight = InFlight(0)
    assert acquire(in_flight, batches(3, 3, 3), most=4) == [Acquired(0, 5, 1)]
    assert in_flight.next_fetch_offset() == 6
    assert acquire(in_flight, batches(3, first=6)) == [Acquired(6, 8, 1)]


def test_exact_limits_take_batches_apart():
    in_flight = InFlight(0)
    assert acquire(in_flight, batches(5), most=2, exact=True) == [Acquired(0, 1, 1)]
    assert in_flight.next_fetch_offset() == 2
    assert acquire(in_flight, batches(5), most=2, exact=True) == [Acquired(2, 3, 1)]


def test_what_is_acquired_is_parted_at_batches():
    assert acquire(InFlight(0), batches(2, 3, 1, 4, 2), size=4) == [
        Acquired(0, 4, 1),
        Acquired(5, 9, 1),
        Acquired(10, 11, 1),
    ]


def test_a_batch_that_begins_before_the_start():
    in_flight = InFlight(7)
    assert acquire(in_flight, batches(5, first=5)) == [Acquired(7, 9, 1)]


def test_nobody_gets_what_somebody_has():
    in_flight = InFlight(0)
    acquire(in_flight, batches(3))
    assert acquire(in_flight, batches(3), member="other") == []


def test_accepted_records_move_the_start():
    in_flight = InFlight(0)
    acquire(in_flight, batches(3, 3))
    assert acknowledge(in_flight, 3, 5, ACCEPT) == ErrorCode.NONE
    assert in_flight.start_offset == 0
    assert in_flight.completed_count == 3
    assert acknowledge(in_flight, 0, 2, REJECT) == ErrorCode.NONE
    assert (in_flight.start_offset, in_flight.is_empty, in_flight.completed_count) == (6, True, 0)


def test_nothing_counts_before_it_is_written():
    in_flight = InFlight(0)
    acquire(in_flight, batches(3))
    transition = in_flight.acknowledge("m", [Acknowledgement(0, 2, [ACCEPT])], LIMITS, 30.0)
    assert transition.batches == [StateBatch(0, 2, ACKNOWLEDGED, 1)]
    assert in_flight.start_offset == 0
    assert in_flight.completed_with([transition]) == 3
    assert acknowledge(in_flight, 0, 0, RELEASE) == ErrorCode.INVALID_RECORD_STATE
    in_flight.roll_back(transition)
    assert acknowledge(in_flight, 0, 0, RELEASE) == ErrorCode.NONE


def test_released_records_come_again():
    in_flight = InFlight(0)
    acquire(in_flight, batches(6))
    acknowledge(in_flight, 2, 3, RELEASE)
    assert in_flight.next_fetch_offset() == 2
    assert acquire(in_flight, batches(6), member="other") == [Acquired(2, 3, 2)]
    assert acknowledge(in_flight, 2, 3, ACCEPT) == ErrorCode.INVALID_RECORD_STATE


def test_one_type_for_each_record():
    in_flight = InFlight(0)
    acquire(in_flight, batches(5))
    assert acknowledge(in_flight, 0, 4, ACCEPT, RELEASE, RELEASE, REJECT, ACCEPT) == ErrorCode.NONE
    assert [(first, last, state) for first, last, state, _, _ in in_flight.states()] == [
        (1, 2, AVAILABLE),
        (3, 3, ARCHIVED),
        (4, 4, ACKNOWLEDGED),
    ]


@pytest.mark.parametrize(
    ("first", "last", "error"),
    [
        (6, 6, ErrorCode.INVALID_REQUEST),
        (4, 6, ErrorCode.INVALID_REQUEST),
        (0, 0, ErrorCode.NONE),
        (1, 1, ErrorCode.NONE),
        (2, 2, ErrorCode.INVALID_RECORD_STATE),
        (2, 3, ErrorCode.INVALID_RECORD_STATE),
    ],
)
def test_acknowledgements_of_what_a_member_does_not_have(first, last, error):
    """Of offsets 2 to 5, the member has 3 to 5; those before are done with."""
    in_flight = InFlight(2)
    acquire(in_flight, batches(1, first=2), most=1, member="other")
    acquire(in_flight, batches(3, first=3))
    assert acknowledge(in_flight, first, last, ACCEPT) == error


def test_one_bad_acknowledgement_spoils_all():
    in_flight = InFlight(0)
    acquire(in_flight, batches(3))
    wanted = [Acknowledgement(0, 1, [ACCEPT]), Acknowledgement(1, 2, [ACCEPT])]
    assert in_flight.acknowledge("m", wanted, LIMITS, 30.0) == ErrorCode.INVALID_RECORD_STATE
    assert acknowledge(in_flight, 0, 2, ACCEPT) == ErrorCode.NONE


def test_time_runs_out():
    in_flight = InFlight(0)
    acquire(in_flight, batches(2), deadline=10.0)
    acquire(in_flight, batches(2, first=2), deadline=20.0)
    assert in_flight.next_deadline() == 10.0
    assert in_flight.expire(9.0, LIMITS) == []
    assert in_flight.expire(10.0, LIMITS) == [StateBatch(0, 1, AVAILABLE, 1)]
    assert in_flight.next_deadline() == 20.0
    assert acquire(in_flight, batches(2)) == [Acquired(0, 1, 2)]


def test_renewed_records_have_more_time():
    in_flight = InFlight(0)
    acquire(in_flight, batches(3), deadline=10.0)
    assert acknowledge(in_flight, 1, 1, RENEW, deadline=25.0) == ErrorCode.NONE
    assert in_flight.expire(20.0, LIMITS) == [StateBatch(0, 0, AVAILABLE, 1), StateBatch(2, 2, AVAILABLE, 1)]


def test_a_group_may_refuse_to_renew():
    in_flight = InFlight(0)
    acquire(in_flight, batches(1), deadline=10.0)
    limits = Limits(5, 100, may_renew=False)
    error = acknowledge(in_flight, 0, 0, RENEW, deadline=25.0, limits=limits)
    assert error == ErrorCode.INVALID_RECORD_STATE
    assert in_flight.next_deadline() == 10.0


def test_the_last_delivery():
    in_flight = InFlight(0, [StateBatch(0, 2, AVAILABLE, 4)])
    limits = Limits(5, 100)
    for offset in range(3):
        assert acquire(in_flight, batches(3), limits=limits) == [Acquired(offset, offset, 5)]
        acknowledge(in_flight, offset, offset, RELEASE, limits=limits)
    assert (in_flight.start_offset, in_flight.is_empty) == (3, True)


def test_records_that_came_back_often_come_in_small_portions():
    in_flight = InFlight(0, [StateBatch(0, 15, AVAILABLE, 3)])
    assert acquire(in_flight, batches(16)) == [Acquired(0, 7, 4)]
    assert acquire(in_flight, batches(16)) == [Acquired(8, 15, 4)]


def test_only_so_many_records_may_be_under_way():
    in_flight = InFlight(0)
    limits = Limits(5, 6)
    assert acquire(in_flight, batches(4, 4, 4), limits=limits) == [Acquired(0, 7, 1)]
    assert not in_flight.can_acquire(limits)
    assert acquire(in_flight, batches(4, first=8), limits=limits) == []
    acknowledge(in_flight, 3, 3, RELEASE, limits=limits)
    assert in_flight.can_acquire(limits)
    assert acquire(in_flight, batches(4, 4, 4), limits=limits) == [Acquired(3, 3, 2)]


def test_a_member_that_is_gone():
    in_flight = InFlight(0)
    acquire(in_flight, batches(2))
    acquire(in_flight, batches(2, first=2), member="other")
    transition = in_flight.release("m", LIMITS)
    assert transition.batches == [StateBatch(0, 1, AVAILABLE, 1)]
    in_flight.complete(transition)
    assert acquire(in_flight, batches(4), member="other") == [Acquired(0, 1, 2)]


def test_deleted_records_are_done_with():
    in_flight = InFlight(0)
    acquire(in_flight, batches(4))
    in_flight.log_starts_at(2)
    assert in_flight.start_offset == 2
    assert acknowledge(in_flight, 0, 3, RELEASE) == ErrorCode.NONE
    assert acquire(in_flight, batches(4)) == [Acquired(2, 3, 2)]
    in_flight.log_starts_at(10)
    assert (in_flight.start_offset, in_flight.next_fetch_offset(), in_flight.is_empty) == (10, 10, True)


def test_records_are_deleted_while_an_acknowledgement_is_written():
    """The range that is acknowledged stays until then, with those behind it that are deleted by now."""
    in_flight = InFlight(0)
    acquire(in_flight, batches(1, 9))
    assert acknowledge(in_flight, 1, 9, RELEASE) == ErrorCode.NONE
    written = in_flight.acknowledge("m", [Acknowledgement(0, 0, (ACCEPT,))], LIMITS, 30.0)
    in_flight.log_starts_at(5)
    assert acquire(in_flight, batches(5, first=5), most=3, exact=True) == [Acquired(5, 7, 2)]
    assert [each[:3] for each in in_flight.states()] == [
        (0, 0, ACQUIRED),
        (1, 4, AVAILABLE),
        (5, 7, ACQUIRED),
        (8, 9, AVAILABLE),
    ]
    in_flight.complete(written)
    assert acknowledge(in_flight, 5, 7, ACCEPT) == ErrorCode.NONE
    assert (in_flight.start_offset, in_flight.next_fetch_offset()) == (8, 8)


def test_what_is_deleted_while_an_acknowledgement_is_written_hides_nothing():
    in_flight = InFlight(0)
    acquire(in_flight, batches(1, 4, 5))
    assert acknowledge(in_flight, 1, 4, RELEASE) == ErrorCode.NONE
    in_flight.acknowledge("m", [Acknowledgement(0, 0, (ACCEPT,))], LIMITS, 30.0)
    in_flight.log_starts_at(5)
    assert in_flight.next_fetch_offset() == 10


def test_compacted_records_are_done_with():
    in_flight = InFlight(0, [StateBatch(0, 3, AVAILABLE, 1)])
    assert acquire(in_flight, batches(2, first=2)) == [Acquired(2, 3, 2)]
    assert in_flight.start_offset == 2
    assert acquire(in_flight, batches(2, first=9)) == [Acquired(9, 10, 1)]
    assert acknowledge(in_flight, 2, 3, ACCEPT) == ErrorCode.NONE
    assert in_flight.start_offset == 9


def test_aborted_records_are_for_nobody():
    in_flight = InFlight(0)
    acquired = acquire(in_flight, batches(2, 2, 2))
    assert in_flight.take_back(2, 3, acquired) == [Acquired(0, 1, 1), Acquired(4, 5, 1)]
    acknowledge(in_flight, 0, 1, ACCEPT)
    assert in_flight.start_offset == 4


def test_what_was_written_is_loaded():
    written = [StateBatch(12, 13, ARCHIVED, 5), StateBatch(10, 10, ACKNOWLEDGED, 1), StateBatch(16, 17, AVAILABLE, 2)]
    in_flight = InFlight(10, written)
    assert in_flight.start_offset == 11
    # Nobody said what happened to 11, 14 and 15.
    assert acquire(in_flight, batches(8, first=10)) == [Acquired(11, 11, 1), Acquired(14, 15, 1), Acquired(16, 17, 3)]


@pytest.mark.parametrize("seed", range(50))
def test_any_life(seed):
    """Against a dictionary with the state of every single offset."""
    made_up = random.Random(seed)
    limits = Limits(made_up.choice((2, 3, 5)), 60)
    log = batches(*(made_up.randrange(1, 6) for _ in range(40)))
    end = log[-1].last
    in_flight = InFlight(0)
    owners, done = {}, set()
    for step in range(200):
        what = made_up.choice(("acquire", "acquire", "acknowledge", "acknowledge", "leave", "expire"))
        member = made_up.choice("abc")
        if what == "acquire" and in_flight.can_acquire(limits) and in_flight.next_fetch_offset() <= end:
            offset = in_flight.next_fetch_offset()
            fetched = [each for each in log if each.last >= offset][: made_up.randrange(1, 5)]
            exact, most = made_up.choice((True, False)), made_up.randrange(1, 9)
            given = acquire(in_flight, fetched, member, most, size=4, exact=exact, deadline=step + 30.0, limits=limits)
            offsets = [offset for each in given for offset in range(each.first, each.last + 1)]
            assert len(offsets) <= most or not exact
            assert not (set(offsets) & (owners.keys() | done))
            owners.update(dict.fromkeys(offsets, (member, step + 30.0)))
        elif what == "acknowledge":
            first = in_flight.start_offset + made_up.randrange(20)
            last = first + made_up.randrange(4)
            kind = made_up.choice((ACCEPT, RELEASE, REJECT))
            error = acknowledge(in_flight, first, last, kind, member=member, limits=limits)
            theirs = all(owners.get(offset, ("",))[0] == member for offset in range(first, last + 1))
            assert theirs == (error == ErrorCode.NONE)
            if theirs:
                for offset in range(first, last + 1):
                    del owners[offset]
                    if kind != RELEASE:
                        done.add(offset)
        elif what == "leave":
            in_flight.complete(in_flight.release(member, limits))
            owners = {offset: owner for offset, owner in owners.items() if owner[0] != member}
        elif what == "expire":
            in_flight.expire(float(step), limits)
            owners = {offset: owner for offset, owner in owners.items() if owner[1] > step}
        states = {
            offset: (state, count, member)
            for first, last, state, count, member in in_flight.states()
            for offset in range(first, last + 1)
        }
        assert {offset: member for offset, (state, _, member) in states.items() if state is ACQUIRED} == {
            offset: member for offset, (member, _) in owners.items()
        }
        assert all(offset < in_flight.start_offset or states[offset][0].is_terminal for offset in done)
        assert all(count <= limits.delivery_count for _, count, _ in states.values())
        assert in_flight.completed_count == sum(state.is_terminal for state, _, _ in states.values())


@pytest.mark.parametrize("seed", range(100))
def test_any_story_with_slow_writes_and_deleted_records(seed):
    """Acknowledgements are written or fail later, one after the other, and the log starts later and later."""
    made_up = random.Random(seed)
    in_flight, log, log_start, now = InFlight(0), batches(*(made_up.randrange(1, 6) for _ in range(60))), 0, 0.0
    done, owners, writes = set(), {}, []
    for _ in range(200):
        now += 1
        member = made_up.choice("abc")
        what = made_up.choice(("acquire", "acquire", "acknowledge", "acknowledge", "written", "delete", "expire"))
        if what == "acquire":
            in_flight.log_starts_at(log_start)
            offset = in_flight.next_fetch_offset()
            fetched = [batch for batch in log if batch.last >= offset][:6]
            if fetched and in_flight.can_acquire(LIMITS):
                exact = made_up.choice((True, False))
                given = acquire(in_flight, fetched, member, made_up.randrange(1, 9), exact=exact, deadline=now + 40)
                offsets = [offset for each in given for offset in range(each.first, each.last + 1)]
                assert not (set(offsets) & (owners.keys() | done))
                owners.update(dict.fromkeys(offsets, (member, now + 40)))
        elif what == "acknowledge":
            mine = sorted(offset for offset, (owner, _) in owners.items() if owner == member and offset >= log_start)
            taken = made_up.sample(mine, min(len(mine), 3))
            acknowledgements = [Acknowledgement(each, each, (made_up.choice((ACCEPT, RELEASE)),)) for each in taken]
            decided = in_flight.acknowledge(member, acknowledgements, LIMITS, now + 40)
            writes.append((decided, acknowledgements, {each: owners.pop(each) for each in taken}))
        elif what == "written" and writes:
            decided, acknowledgements, had = writes.pop(0)
            if made_up.random() < 0.3:
                in_flight.roll_back(decided)
                owners.update(had)
            else:
                in_flight.complete(decided)
                done.update(each.first for each in acknowledgements if each.types == (ACCEPT,))
        elif what == "delete":
            log_start += made_up.randrange(4)
        elif what == "expire":
            in_flight.expire(now, LIMITS)
        owners = {
            offset: (owner, deadline)
            for offset, (owner, deadline) in owners.items()
            if offset >= in_flight.start_offset and (what != "expire" or deadline > now)
        }
        states = in_flight.states()
        assert all(before[1] < after[0] <= after[1] for before, after in pairwise(states))
