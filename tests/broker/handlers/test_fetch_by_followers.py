"""Fetch by followers, and by consumers that may read from them. The broker is the one with node id 0."""

import asyncio

import pytest

from barnabas.broker.controller.images import BrokerImage
from barnabas.client.requests.data import fetch
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from tests.broker.server.harness import connected, frame
from tests.storage.support import batch, records_in, values_of
from tests.support.manual_clock import ManualClock
from tests.support.running_broker import create_topic, partition, running

VERSION = 17
CONSUMER_VERSION = 12
LONG = 100_000
RACK_AWARE = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


@pytest.fixture
async def clock():
    return ManualClock()


@pytest.fixture
async def broker(tmp_path, clock):
    settings = {"replica_selector_class": RACK_AWARE, "broker_rack": "north"}
    async with running(tmp_path, clock=clock, **settings) as broker:
        await create_topic(broker)
        partition(broker).lead(3, 1, (0, 1, 2), (0, 1))
        broker.server.is_from_broker = lambda connection: True
        yield broker


@pytest.fixture
async def client(broker):
    async with connected(broker.server) as client:
        yield client


def append(broker, *values):
    partition(broker).append_now(batch(*values), 0)


def request(broker, follower=1, offset=0, epoch=3, last_epoch=-1, broker_epoch=5, start=0, max_wait_ms=0):
    wanted = FetchPartition(
        partition=0,
        current_leader_epoch=epoch,
        fetch_offset=offset,
        last_fetched_epoch=last_epoch,
        log_start_offset=start,
        partition_max_bytes=100_000,
    )
    return FetchRequest(
        replica_state=ReplicaState(replica_id=follower, replica_epoch=broker_epoch),
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        topics=[FetchTopic(topic_id=partition(broker).topic_id, partitions=[wanted])],
    )


async def ask(client, broker, **fields):
    response = await client.ask(ApiKey.FETCH, request(broker, **fields), VERSION)
    return the_one(response)


def the_one(response):
    assert not response.error_code
    return response.responses[0].partitions[0]


def values(answer):
    return values_of(records_in(memoryview(answer.records)))


class TestFollowers:
    async def test_they_read_to_the_end_of_the_log(self, broker, client):
        append(broker, b"a")
        answer = await ask(client, broker)
        assert (values(answer), answer.high_watermark) == ([b"a"], 0)

    async def test_what_they_fetch_shows_what_they_have(self, broker, client):
        append(broker, b"a")
        answer = await ask(client, broker, offset=1)
        assert (answer.high_watermark, partition(broker).log.high_watermark) == (1, 1)
        follower = partition(broker).leadership.followers[1]
        assert (follower.end_offset, follower.log_start_offset, follower.broker_epoch) == (1, 0, 5)

    async def test_what_is_appended_because_of_their_fetch_is_in_its_answer(self, broker, client):
        """A coordinator appends when something is committed: perhaps to a partition that was read before."""
        await create_topic(broker, "other")
        other = partition(broker, "other")
        other.lead(3, 1, (0, 1, 2), (0, 1))
        other.append_now(batch(b"a"), 0)
        other.when_committed(1, lambda failure: append(broker, b"b"))
        both = request(broker, max_wait_ms=LONG)
        (wanted,) = request(broker, offset=1).topics[0].partitions
        both.topics.append(FetchTopic(topic_id=other.topic_id, partitions=[wanted]))
        answer = the_one(await client.ask(ApiKey.FETCH, both, VERSION))
        assert values(answer) == [b"b"]

    async def test_a_client_that_says_it_follows_is_not_believed(self, broker, client):
        """It would move the high watermark past what replicas have."""
        append(broker, b"a")
        broker.server.is_from_broker = lambda connection: False
        answer = await ask(client, broker, follower=1, offset=1)
        assert answer.error_code == ErrorCode.UNKNOWN_LEADER_EPOCH  # as to somebody who is not a replica
        assert partition(broker).log.high_watermark == 0

    async def test_a_follower_that_is_not_a_replica(self, broker, client):
        assert (await ask(client, broker, follower=9)).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
        assert (await ask(client, broker, follower=9, epoch=-1)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER

    @pytest.mark.parametrize(
        ("epoch", "error"), [(2, ErrorCode.FENCED_LEADER_EPOCH), (4, ErrorCode.UNKNOWN_LEADER_EPOCH)]
    )
    async def test_a_follower_with_another_leader_epoch_does_not_count(self, broker, client, epoch, error):
        append(broker, b"a")
        assert (await ask(client, broker, offset=1, epoch=epoch)).error_code == error
        assert partition(broker).log.high_watermark == 0

    async def test_a_request_from_before_its_restart_does_not_count(self, broker, client):
        append(broker, b"a")
        await ask(client, broker, offset=0, broker_epoch=6)
        assert (await ask(client, broker, offset=1, broker_epoch=5)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert partition(broker).log.high_watermark == 0

    async def test_a_follower_whose_log_diverges_does_not_count_and_is_told_where(self, broker, client):
        append(broker, b"a")
        partition(broker).lead(4, 2, (0, 1, 2), (0, 1))
        append(broker, b"b")
        answer = await ask(client, broker, offset=2, epoch=4, last_epoch=3)
        assert (answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset) == (3, 1)
        assert partition(broker).leadership.followers[1].end_offset == -1

    @pytest.mark.parametrize("offset", [-1, 2])
    async def test_an_offset_that_the_leader_does_not_have(self, broker, client, offset):
        append(broker, b"a")
        assert (await ask(client, broker, offset=offset)).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        assert partition(broker).leadership.followers[1].end_offset == -1

    async def test_followers_of_a_follower_are_refused(self, broker, client):
        partition(broker).follow(2, 4)
        answer = await ask(client, broker, epoch=4)
        assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert (answer.current_leader.leader_id, answer.current_leader.leader_epoch) == (2, 4)

    async def test_they_wait_for_what_is_written_and_count_once(self, broker, client, clock):
        client.send(frame(ApiKey.FETCH, request(broker, max_wait_ms=LONG), VERSION))
        await clock.timer_set(LONG / 1000)
        fetched_ms = partition(broker).leadership.followers[1].fetched_ms
        clock.advance(5)
        append(broker, b"a")
        answer = the_one((await client.answer(ApiKey.FETCH, VERSION))[1])
        assert (values(answer), answer.high_watermark) == ([b"a"], 0)
        assert partition(broker).leadership.followers[1].fetched_ms == fetched_ms
        assert not partition(broker).append_waiters

    async def test_a_waiting_fetch_learns_about_another_leader(self, broker, client, clock):
        client.send(frame(ApiKey.FETCH, request(broker, max_wait_ms=LONG), VERSION))
        await clock.timer_set(LONG / 1000)
        partition(broker).follow(2, 4)
        assert the_one((await client.answer(ApiKey.FETCH, VERSION))[1]).error_code == ErrorCode.FENCED_LEADER_EPOCH

    async def test_consumers_are_woken_by_what_followers_fetch(self, broker, client, clock):
        async with connected(broker.server) as consumer:
            wanted = fetch(("t", 0, 0), max_wait_ms=LONG, min_bytes=1)
            consumer.send(frame(ApiKey.FETCH, wanted, CONSUMER_VERSION))
            await clock.timer_set(LONG / 1000)
            append(broker, b"a")
            await ask(client, broker, offset=0)
            assert partition(broker).waiters
            await ask(client, broker, offset=1)
            assert values(the_one((await consumer.answer(ApiKey.FETCH, CONSUMER_VERSION))[1])) == [b"a"]


class TestReadingFromFollowers:
    async def consume(self, client, offset=0, version=CONSUMER_VERSION, **fields):
        wanted = fetch(("t", 0, offset), max_wait_ms=0, **fields)
        return the_one(await client.ask(ApiKey.FETCH, wanted, version))

    @pytest.fixture
    def follows(self, broker):
        """This broker follows; it has two records, of which the first is committed."""
        found = partition(broker)
        append(broker, b"a")
        append(broker, b"b")
        found.follow(1, 4)
        found.append_fetched(memoryview(b""), 1, 0)
        return found

    async def test_a_follower_shows_what_is_committed(self, follows, client):
        answer = await self.consume(client)
        assert (answer.error_code, values(answer), answer.high_watermark) == (0, [b"a"], 1)

    async def test_clients_that_do_not_support_reading_from_followers_are_refused(self, follows, client):
        assert (await self.consume(client, version=10)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER

    async def test_consumers_are_refused_if_it_follows_nobody(self, follows, client):
        follows.follow(-1, 5)
        assert (await self.consume(client)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER

    async def test_offsets_that_it_does_not_have_must_be_asked_elsewhere(self, follows, client):
        assert (await self.consume(client, offset=3)).error_code == ErrorCode.OFFSET_OUT_OF_RANGE

    async def test_waiting_consumers_are_woken_when_more_is_committed(self, follows, client, clock):
        """KAFKA-13778."""
        client.send(frame(ApiKey.FETCH, fetch(("t", 0, 1), max_wait_ms=LONG, min_bytes=1), CONSUMER_VERSION))
        await clock.timer_set(LONG / 1000)
        follows.append_fetched(memoryview(b""), 2, 0)
        assert values(the_one((await client.answer(ApiKey.FETCH, CONSUMER_VERSION))[1])) == [b"b"]

    async def test_a_leader_sends_consumers_to_their_rack(self, broker, client):
        """Only to a replica that is in sync, alive, and has the offset (KAFKA-14372)."""
        append(broker, b"a")
        brokers = {n: BrokerImage(n, (), rack) for n, rack in ((0, "north"), (1, "south"), (2, "east"))}
        broker.cluster.brokers = brokers
        await ask(client, broker, follower=1, offset=1)
        await ask(client, broker, follower=2, offset=1)
        partition(broker).leadership.isr = (0, 1)
        for rack, replica in (("south", 1), ("north", -1), ("east", -1), ("west", -1), ("", -1)):
            answer = await self.consume(client, rack_id=rack)
            assert answer.preferred_read_replica == replica
            assert bool(answer.records) == (replica == -1)
        partition(broker).leadership.followers[1].log_start_offset = 1
        assert (await self.consume(client, rack_id="south")).preferred_read_replica == -1
        partition(broker).leadership.followers[1].log_start_offset = 0
        del brokers[1]
        assert (await self.consume(client, rack_id="south")).preferred_read_replica == -1

    async def test_it_redirects_them_without_waiting(self, broker, client):
        broker.cluster.brokers = {1: BrokerImage(1, (), "south")}
        await ask(client, broker, follower=1, offset=0)
        wanted = fetch(("t", 0, 0), max_wait_ms=LONG, min_bytes=1, rack_id="south")
        answer = the_one(await asyncio.wait_for(client.ask(ApiKey.FETCH, wanted, CONSUMER_VERSION), 60))
        assert answer.preferred_read_replica == 1
