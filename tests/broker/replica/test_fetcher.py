"""Following a leader: what is requested, and how answers are handled."""

import asyncio
from types import SimpleNamespace

import pytest
from structlog.testing import capture_logs

from barnabas.broker.interbroker.channel import ChannelError
from barnabas.broker.replica.fetcher import Fetcher
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.fetch import EpochEndOffset, FetchableTopicResponse, FetchResponse, PartitionData
from barnabas.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from barnabas.protocol.records.errors import CorruptRecords
from barnabas.storage.errors import LogFailure
from tests.support.manual_clock import ManualClock

BACKOFF = 2
SETTINGS = SimpleNamespace(
    replica_fetch_max_bytes=1000,
    replica_fetch_response_max_bytes=10_000,
    replica_fetch_min_bytes=1,
    replica_fetch_wait_max_ms=500,
    replica_fetch_backoff_ms=BACKOFF * 1000,
    replica_socket_timeout_ms=30_000,
)


class Leader:
    """A channel to it: requests wait until the test answers them."""

    host, port = "leader", 9092

    def __init__(self):
        self.requests = []
        self._answer = None
        self.closed = False

    async def request(self, key, message, version, answer, timeout_ms):
        self.requests.append((key, message))
        self._answer = asyncio.get_running_loop().create_future()
        return await self._answer

    def close(self):
        self.closed = True

    async def answers(self, answer):
        if isinstance(answer, Exception):
            self._answer.set_exception(answer)
        else:
            self._answer.set_result(answer)
        await settle()

    async def sends(self, *data, session_id=7, error=ErrorCode.NONE):
        """Answer with these partitions."""
        topics = [FetchableTopicResponse(topic_id=topic_id(each), partitions=[each]) for each in data]
        await self.answers(FetchResponse(error_code=error, session_id=session_id, responses=topics))

    @property
    def asked(self):
        """The last Fetch: its session, and the offset for each partition."""
        key, message = self.requests[-1]
        assert key == ApiKey.FETCH
        offsets = {part.partition: part.fetch_offset for topic in message.topics for part in topic.partitions}
        return message.session_id, message.session_epoch, offsets

    async def finds(self, *offsets):
        """Answer questions for offsets."""
        for offset in offsets:
            key, _ = self.requests[-1]
            assert key == ApiKey.LIST_OFFSETS
            found = ListOffsetsPartitionResponse(partition_index=0, offset=offset)
            await self.answers(ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="t", partitions=[found])]))


class Followed:
    """Remembers what it was told; a record is a byte here."""

    topic = "t"

    def __init__(self, index=0, leader_epoch=3):
        self.index = index
        self.topic_id = bytes([index] * 16)
        self.leader_epoch = leader_epoch
        self.log_end_offset = 10
        self.last_epoch = 2
        self.log_start_offset = 0
        self.is_ready = True
        self.told = []
        self.error = None

    def append_fetched(self, records, high_watermark, log_start_offset):
        if self.error is not None:
            raise self.error
        self.told.append(("append", bytes(records), high_watermark, log_start_offset))
        self.log_end_offset += len(records)

    def truncate_to_leader(self, epoch, end_offset):
        self.told.append(("diverges", epoch, end_offset))
        self.log_end_offset = end_offset

    def truncate_to(self, offset):
        self.told.append(("cut", offset))
        self.log_end_offset = offset

    def restart_at(self, offset):
        self.told.append(("restart", offset))
        self.log_end_offset = offset


def topic_id(data):
    return bytes([data.partition_index] * 16)


def data(index=0, records=b"", error=ErrorCode.NONE, **fields):
    return PartitionData(
        partition_index=index, error_code=error, high_watermark=11, log_start_offset=1, records=records, **fields
    )


async def settle():
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def leader():
    return Leader()


@pytest.fixture
async def fetcher(leader, clock):
    fetcher = Fetcher(1, lambda: 42, 9, leader, SETTINGS, clock, asyncio.get_running_loop())
    yield fetcher
    fetcher.close()
    await settle()


async def follow(fetcher, *partitions):
    for partition in partitions:
        fetcher.follow(partition)
    await settle()


async def test_the_first_fetch_names_everything(fetcher, leader):
    await follow(fetcher, Followed(0), Followed(1))
    message = leader.requests[0][1]
    assert (message.replica_state.replica_id, message.replica_state.replica_epoch) == (1, 42)
    assert (message.max_wait_ms, message.min_bytes, message.max_bytes) == (500, 1, 10_000)
    assert leader.asked == (0, 0, {0: 10, 1: 10})
    part = message.topics[0].partitions[0]
    assert (part.current_leader_epoch, part.last_fetched_epoch, part.log_start_offset) == (3, 2, 0)
    assert part.partition_max_bytes == 1000


async def test_what_arrives_is_appended_and_the_next_fetch_names_what_changed(fetcher, leader):
    first, second = Followed(0), Followed(1)
    await follow(fetcher, first, second)
    await leader.sends(data(0, b"ab"), data(1))
    assert first.told == [("append", b"ab", 11, 1)]
    assert second.told == [("append", b"", 11, 1)]
    assert leader.asked == (7, 1, {0: 12})


async def test_one_request_at_a_time(fetcher, leader):
    await follow(fetcher, Followed(0))
    await follow(fetcher, Followed(1))
    assert len(leader.requests) == 1
    await leader.sends(data(0))
    assert leader.asked == (7, 1, {1: 10})


async def test_logs_that_diverge_are_truncated(fetcher, leader):
    followed = Followed()
    await follow(fetcher, followed)
    await leader.sends(data(diverging_epoch=EpochEndOffset(epoch=1, end_offset=6)))
    assert followed.told == [("diverges", 1, 6)]
    assert leader.asked == (7, 1, {0: 6})


async def test_an_answer_for_a_partition_that_is_no_longer_followed_is_dropped(fetcher, leader):
    followed, other = Followed(0), Followed(1)
    await follow(fetcher, followed, other)
    fetcher.forget(followed)
    await leader.sends(data(0, b"ab"), data(1, b"c"))
    assert (followed.told, other.told) == ([], [("append", b"c", 11, 1)])
    assert leader.asked == (7, 0, {1: 11})


async def test_a_partition_that_is_no_longer_followed_is_named_as_forgotten(fetcher, leader):
    followed, other = Followed(0), Followed(1)
    await follow(fetcher, followed, other)
    fetcher.forget(followed)
    await leader.sends(data(1, b"c"))
    assert leader.asked == (7, 1, {1: 11})
    assert [topic.partitions for topic in leader.requests[-1][1].forgotten_topics_data] == [[0]]


async def test_an_answer_for_another_epoch_or_position_is_dropped(fetcher, leader):
    before, moved = Followed(0), Followed(1)
    await follow(fetcher, before, moved)
    later = Followed(0, leader_epoch=4)
    await follow(fetcher, later)
    moved.log_end_offset = 5
    await leader.sends(data(0, b"ab"), data(1, b"cd"))
    assert before.told == later.told == moved.told == []


async def test_after_an_answer_was_dropped_everything_is_asked_for_again(fetcher, leader):
    """The leader takes the high watermark as known. It sends it again only in a new session."""
    idle = Followed(0)
    await follow(fetcher, idle)
    later = Followed(0, leader_epoch=4)
    await follow(fetcher, later)
    await leader.sends(data(0))
    assert leader.asked == (7, 0, {0: 10})
    await leader.sends(data(0), session_id=8)
    assert later.told == [("append", b"", 11, 1)]
    assert leader.asked == (8, 1, {})


@pytest.mark.parametrize("error", [CorruptRecords("damaged"), LogFailure("full"), OSError("gone"), ZeroDivisionError()])
async def test_a_partition_that_fails_waits_while_the_others_continue(fetcher, leader, clock, error):
    bad, good = Followed(0), Followed(1)
    bad.error = error
    await follow(fetcher, bad, good)
    with capture_logs() as logs:
        await leader.sends(data(0, b"x"), data(1, b"y"))
    (entry,) = (entry for entry in logs if entry["event"] == "partitions cannot follow their leader")
    assert (entry["count"], entry["partitions"]) == (1, ["t-0"])
    assert (good.told, leader.asked[2]) == ([("append", b"y", 11, 1)], {1: 11})
    clock.advance(BACKOFF)
    bad.error = None
    await leader.sends(data(1, b"z"))
    assert leader.asked[2] == {0: 10, 1: 12}


async def test_an_error_for_a_partition_is_reported_once(fetcher, leader, clock):
    await follow(fetcher, Followed(0))
    with capture_logs() as logs:
        for _ in range(3):
            await leader.sends(data(0, error=ErrorCode.NOT_LEADER_OR_FOLLOWER))
            clock.advance(BACKOFF)
            await settle()
    assert len(leader.requests) == 4
    assert [entry["reason"] for entry in logs] == ["NOT_LEADER_OR_FOLLOWER"]


@pytest.mark.parametrize("error", [ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.FENCED_LEADER_EPOCH])
async def test_a_partition_whose_leader_epoch_is_not_known_everywhere_is_retried_soon(fetcher, leader, clock, error):
    await follow(fetcher, Followed(0), Followed(1))
    with capture_logs() as logs:
        for pause_ms in (10, 20, 40):
            await leader.sends(data(0, error=error))
            assert 0 not in leader.asked[2]
            # The others do not keep it waiting.
            assert leader.requests[-1][1].max_wait_ms == pause_ms
            clock.advance(pause_ms / 1000)
            await leader.sends(data(1))
            assert 0 in leader.asked[2]
    assert logs == []
    await leader.sends(data(0, b"x"))
    assert leader.requests[-1][1].max_wait_ms == SETTINGS.replica_fetch_wait_max_ms


async def test_such_a_partition_is_reported_if_that_lasts(fetcher, leader, clock):
    await follow(fetcher, Followed(0))
    with capture_logs() as logs:
        for _ in range(12):
            await leader.sends(data(0, error=ErrorCode.UNKNOWN_LEADER_EPOCH))
            clock.advance(BACKOFF)
            await settle()
    assert [entry["reason"] for entry in logs] == ["UNKNOWN_LEADER_EPOCH"]


async def test_a_lost_connection_starts_a_new_session_after_a_while(fetcher, leader, clock):
    await follow(fetcher, Followed(0))
    await leader.sends(data(0))
    with capture_logs() as logs:
        await leader.answers(ChannelError("lost"))
        assert len(leader.requests) == 2
        clock.advance(BACKOFF)
        await settle()
        await leader.answers(ChannelError("lost"))
    assert leader.asked == (0, 0, {0: 10})
    assert len(logs) == 1


async def test_a_session_that_the_leader_has_lost_is_restarted_at_once(fetcher, leader):
    await follow(fetcher, Followed(0))
    await leader.sends(data(0))
    await leader.sends(error=ErrorCode.FETCH_SESSION_ID_NOT_FOUND, session_id=0)
    assert leader.asked == (0, 0, {0: 10})


async def test_an_unexpected_failure_does_not_end_it(fetcher, leader, clock):
    await follow(fetcher, Followed(0))
    with capture_logs():
        await leader.answers(ZeroDivisionError())
    clock.advance(BACKOFF)
    await settle()
    assert len(leader.requests) == 2


@pytest.mark.parametrize(
    ("latest", "earliest", "told"),
    [(8, 0, [("cut", 8)]), (30, 20, [("restart", 20)]), (30, 5, [])],
    ids=["the leader's log is shorter", "it begins later", "neither"],
)
async def test_an_offset_that_the_leader_does_not_have(fetcher, leader, clock, latest, earliest, told):
    followed = Followed()
    await follow(fetcher, followed)
    with capture_logs():
        await leader.sends(data(error=ErrorCode.OFFSET_OUT_OF_RANGE))
        await leader.finds(latest, earliest)
    assert followed.told == told
    clock.advance(BACKOFF)
    await settle()
    assert leader.asked[2] == {0: followed.log_end_offset}


async def test_one_that_is_not_on_disk_yet_is_left_out_until_it_is(fetcher, leader):
    followed = Followed()
    await follow(fetcher, followed)
    followed.is_ready = False
    await leader.sends(data(0, b"a"))
    assert len(leader.requests) == 1
    followed.is_ready = True
    fetcher.wake()
    await settle()
    assert leader.asked == (0, 0, {0: 11})


async def test_without_partitions_nothing_is_asked(fetcher, leader):
    followed = Followed()
    await follow(fetcher, followed)
    fetcher.forget(followed)
    assert fetcher.is_idle
    await leader.sends(data(0))
    assert len(leader.requests) == 1
    fetcher.close()
    assert leader.closed


async def test_large_answers_leave_room_for_others(fetcher, leader, monkeypatch):
    monkeypatch.setattr("barnabas.broker.replica.fetcher._APPENDED_AT_ONCE", 1)
    partitions = [Followed(index) for index in range(5)]
    await follow(fetcher, *partitions)
    answering = asyncio.ensure_future(leader.sends(*(data(index, b"x") for index in range(5))))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    started = [bool(partition.told) for partition in partitions]
    assert True in started
    assert False in started
    fetcher.forget(partitions[4])  # as an order may do meanwhile
    await answering
    assert [bool(partition.told) for partition in partitions] == [True] * 4 + [False]
