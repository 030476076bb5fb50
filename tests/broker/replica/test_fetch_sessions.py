"""Fetch sessions, as a client and a broker play them."""

from itertools import count

import pytest

from barnabas.broker.replica.fetch_sessions import EVICTION_MS, FetchContext, FetchSessions
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.fetch import (
    EpochEndOffset,
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
)

VERSION = 12


def sessions(slots=10):
    ids = count(1)
    return FetchSessions(lambda: slots, lambda: next(ids))


def fetch(*offsets, session_id=0, epoch=0, forget=()):
    """A request for partitions 0, 1, … of topic `t` at these offsets; None leaves a partition out."""
    partitions = [
        FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1000)
        for index, offset in enumerate(offsets)
        if offset is not None
    ]
    return FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        session_id=session_id,
        session_epoch=epoch,
        topics=[FetchTopic(topic="t", partitions=partitions)] if partitions else [],
        forgotten_topics_data=[ForgottenTopic(topic="t", partitions=list(forget))] if forget else [],
    )


def ask(cache, request, answers=None, now_ms=0, version=VERSION):
    """Play one request through: `answers` says what each partition has, by default nothing new at watermark 5."""
    context = cache.context(version, request, now_ms)
    if not isinstance(context, FetchContext):
        return context
    answers = answers or {}
    return context.answer(
        [(key, answers.get(key.partition, partition_data(key.partition))) for key in list(context.partitions)]
    )


def partition_data(index, high_watermark=5, records=b"", error_code=0):
    return PartitionData(
        partition_index=index, high_watermark=high_watermark, log_start_offset=0, records=records, error_code=error_code
    )


def told(response):
    return [partition.partition_index for topic in response.responses for partition in topic.partitions]


def test_a_full_request_starts_a_session_and_returns_everything():
    cache = sessions()
    response = ask(cache, fetch(0, 0))
    assert response.session_id == 1
    assert told(response) == [0, 1]


def test_an_incremental_request_gets_only_changes():
    cache = sessions()
    ask(cache, fetch(0, 0))
    assert told(ask(cache, fetch(session_id=1, epoch=1))) == []
    assert told(ask(cache, fetch(session_id=1, epoch=2), {1: partition_data(1, records=b"x")})) == [1]
    assert told(ask(cache, fetch(session_id=1, epoch=3), {0: partition_data(0, high_watermark=6)})) == [0]


def test_an_error_and_its_end_are_both_reported():
    cache = sessions()
    ask(cache, fetch(0))
    assert told(ask(cache, fetch(session_id=1, epoch=1), {0: partition_data(0, error_code=1)})) == [0]
    assert told(ask(cache, fetch(session_id=1, epoch=2))) == [0]
    assert told(ask(cache, fetch(session_id=1, epoch=3))) == []


def test_a_follower_that_had_to_truncate_its_log_is_told_the_high_watermark_after_that():
    cache = sessions()
    ask(cache, fetch(0))
    diverging = partition_data(0)
    diverging.diverging_epoch = EpochEndOffset(epoch=1, end_offset=3)
    assert told(ask(cache, fetch(session_id=1, epoch=1), {0: diverging})) == [0]
    assert told(ask(cache, fetch(session_id=1, epoch=2), {0: partition_data(0)})) == [0]
    assert told(ask(cache, fetch(session_id=1, epoch=3), {0: partition_data(0)})) == []


def test_partitions_join_move_and_leave():
    cache = sessions()
    ask(cache, fetch(0))
    context = cache.context(VERSION, fetch(7, 3, session_id=1, epoch=1), 0)
    assert [(key.partition, wanted.fetch_offset) for key, wanted in context.partitions.items()] == [(0, 7), (1, 3)]
    context = cache.context(VERSION, fetch(session_id=1, epoch=2, forget=[0]), 0)
    assert [key.partition for key in context.partitions] == [1]


def test_partitions_that_returned_records_go_to_the_end_of_the_line():
    cache = sessions()
    ask(cache, fetch(0, 0, 0))
    ask(cache, fetch(session_id=1, epoch=1), {0: partition_data(0, records=b"x")})
    context = cache.context(VERSION, fetch(session_id=1, epoch=2), 0)
    assert [key.partition for key in context.partitions] == [1, 2, 0]


def test_a_session_that_forgets_everything_ends():
    cache = sessions()
    ask(cache, fetch(0))
    assert ask(cache, fetch(session_id=1, epoch=1, forget=[0])).session_id == 0
    assert len(cache) == 0


def test_an_unknown_session_a_wrong_epoch_and_a_mix_of_names_and_ids_are_refused():
    cache = sessions()
    ask(cache, fetch(0))
    assert ask(cache, fetch(session_id=99, epoch=1)) == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert ask(cache, fetch(session_id=1, epoch=2)) == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert ask(cache, fetch(session_id=1, epoch=1), version=13) == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
    assert told(ask(cache, fetch(session_id=1, epoch=1))) == []  # and none of that harmed the session


def test_epoch_minus_one_ends_a_session_and_starts_none():
    cache = sessions()
    ask(cache, fetch(0))
    response = ask(cache, fetch(0, session_id=1, epoch=-1))
    assert response.session_id == 0
    assert told(response) == [0]
    assert len(cache) == 0


def test_a_full_request_in_a_session_starts_another():
    cache = sessions()
    ask(cache, fetch(0))
    assert ask(cache, fetch(0, session_id=1, epoch=0)).session_id == 2
    assert len(cache) == 1


def test_versions_before_7_have_no_sessions():
    cache = sessions()
    assert ask(cache, fetch(0), version=6).session_id == 0
    assert len(cache) == 0


def test_epochs_wrap_around_to_one():
    cache = sessions()
    ask(cache, fetch(0))
    cache._sessions[1].epoch = 2**31 - 1
    ask(cache, fetch(session_id=1, epoch=2**31 - 1))
    assert told(ask(cache, fetch(session_id=1, epoch=1))) == []


@pytest.mark.parametrize(
    ("now_ms", "size", "admitted"),
    [
        pytest.param(0, 5, False, id="a fresh session is safe"),
        pytest.param(EVICTION_MS + 1, 1, True, id="an unused one is not"),
    ],
)
def test_a_full_cache_admits_a_session_only_in_place_of_an_unused_one(now_ms, size, admitted):
    cache = sessions(slots=1)
    ask(cache, fetch(0, 0))
    response = ask(cache, fetch(*[0] * size), now_ms=now_ms)
    assert (response.session_id != 0) is admitted
    assert told(response) == list(range(size))  # without a session it is answered nevertheless


def test_a_larger_session_takes_the_place_of_a_smaller_settled_one():
    cache = sessions(slots=1)
    ask(cache, fetch(0, 0))
    used_lately = EVICTION_MS - 1
    ask(cache, fetch(session_id=1, epoch=1), now_ms=used_lately)
    now_ms = EVICTION_MS + 1
    assert ask(cache, fetch(0, 0), now_ms=now_ms).session_id == 0
    assert ask(cache, fetch(0, 0, 0), now_ms=now_ms).session_id == 2


def test_no_slots_mean_no_sessions():
    cache = sessions(slots=0)
    assert ask(cache, fetch(0)).session_id == 0
