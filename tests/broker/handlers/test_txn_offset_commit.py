"""TxnOffsetCommit, as a producer sends it to a real broker: from its first offset to the marker, and over a restart."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from barnabas.broker.internal_topics import CONSUMER_OFFSETS
from barnabas.broker.transaction.markers import Marker
from barnabas.client.requests.groups import offset_fetch
from barnabas.client.requests.transactions import txn_offset_commit
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from tests.broker.handlers.group_client import coordinating, group_client
from tests.support.running_broker import running

PRODUCER = 7
NEVER = (-1, ErrorCode.NONE)
UNSTABLE = (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)


class Coordinator:
    """Gives the same answer about every transaction."""

    def __init__(self, error=ErrorCode.NONE):
        self.error = error
        self.asked = []

    def verify(self, transactional_id, producer_id, producer_epoch, partitions, answer):
        self.asked.append("verify")
        answer(dict.fromkeys(partitions, self.error))

    def add_partitions(self, transactional_id, producer_id, producer_epoch, partitions, answer):
        self.asked.append("add")
        answer(dict.fromkeys(partitions, self.error))


@pytest.fixture
async def client(tmp_path):
    async with coordinating(tmp_path) as client:
        answer_for(client)
        yield client


def answer_for(client, error=ErrorCode.NONE):
    client.coordinator = Coordinator(error)
    client.broker.admission._coordinator = client.coordinator


async def commit(client, *offsets, version=5, epoch=0, producer_id=PRODUCER, metadata="", group="g", **fields):
    """Commit (topic, partition, offset) in a transaction; the errors, partition by partition."""
    request = txn_offset_commit("id", group, producer_id, epoch, *offsets, metadata=metadata, **fields)
    answer = await client.client.ask(ApiKey.TXN_OFFSET_COMMIT, request, version)
    return [partition.error_code for topic in answer.topics for partition in topic.partitions]


async def end(client, *, commit, epoch=0, producer_id=PRODUCER, group="g"):
    """What a transaction's coordinator does at its end."""
    broker = client.broker
    done = asyncio.get_running_loop().create_future()
    index = broker.groups.partition_of(group)
    marker = Marker(producer_id, epoch, 0, commit, [(CONSUMER_OFFSETS, index)])
    broker.transaction_markers.write(marker, done.set_result)
    return await done


async def stable(client, index=0, version=7):
    """What a reader of stable offsets gets: the offset and the error."""
    request = offset_fetch(version, {"g": [("t", [index])]}, require_stable=True)
    ((found,),) = [
        topic.partitions for topic in (await client.client.ask(ApiKey.OFFSET_FETCH, request, version)).topics
    ]
    return found.committed_offset, found.error_code


@pytest.mark.parametrize("version", range(6))
async def test_every_version_commits(client, version):
    assert await commit(client, ("t", 0, 5), version=version) == [ErrorCode.NONE]
    assert client.coordinator.asked == ["add" if version >= 5 else "verify"]
    assert await stable(client) == UNSTABLE
    assert await stable(client, 1) == NEVER
    assert await client.committed() == {}
    await end(client, commit=True)
    assert await stable(client) == (5, ErrorCode.NONE)
    assert await client.committed() == {("t", 0): 5}


async def test_an_abort_drops_them(client):
    await client.commit(("t", 0, 1))
    await commit(client, ("t", 0, 5))
    await end(client, commit=False)
    assert await stable(client) == (1, ErrorCode.NONE)


async def test_the_order_in_the_log_counts(client):
    await commit(client, ("t", 0, 5), ("t", 1, 5))
    await client.commit(("t", 0, 9))
    await end(client, commit=True)
    assert await client.committed() == {("t", 0): 9, ("t", 1): 5}


async def test_the_coordinator_is_asked_once_a_transaction(client):
    await commit(client, ("t", 0, 5))
    await commit(client, ("t", 0, 6))
    assert client.coordinator.asked == ["add"]
    await end(client, commit=True)
    await commit(client, ("t", 0, 6))
    assert client.coordinator.asked == ["add", "add"]


@pytest.mark.parametrize(
    ("version", "error", "expected"),
    [
        (3, ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.INVALID_TXN_STATE),
        (4, ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.TRANSACTION_ABORTABLE),
        (5, ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH),
        (3, ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH),
        (5, ErrorCode.INVALID_PRODUCER_ID_MAPPING, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        (5, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
    ],
)
async def test_what_the_coordinator_does_not_allow(client, version, error, expected):
    answer_for(client, error)
    assert await commit(client, ("t", 0, 5), version=version) == [expected]
    assert await stable(client) == NEVER


async def test_an_epoch_that_is_over_is_refused_by_the_partition(client):
    await commit(client, ("t", 0, 5), epoch=3)
    assert await commit(client, ("t", 0, 6), epoch=2) == [ErrorCode.INVALID_PRODUCER_EPOCH]


async def test_what_does_not_exist_or_is_too_long_fails_alone(client):
    errors = await commit(client, ("t", 0, 5), ("t", 3, 5), ("unknown", 0, 5))
    assert errors == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert await commit(client, ("t", 1, 5), metadata="x" * 5000) == [ErrorCode.OFFSET_METADATA_TOO_LARGE]
    assert await stable(client, 1) == NEVER
    assert await commit(client, ("unknown", 0, 5)) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert await commit(client) == []


async def test_groups_that_cannot_be(client):
    assert await commit(client, ("t", 0, 5), group="") == [ErrorCode.INVALID_GROUP_ID]
    assert await commit(client, ("t", 0, 5), member="m", generation=3) == [ErrorCode.ILLEGAL_GENERATION]


async def test_a_member_commits_in_its_generation(client):
    member = await client.stable()
    assert await commit(client, ("t", 0, 5), member=member, generation=1) == [ErrorCode.NONE]
    assert await commit(client, ("t", 0, 5), member=member, generation=2) == [ErrorCode.ILLEGAL_GENERATION]
    assert await commit(client, ("t", 0, 5), member="m", generation=1) == [ErrorCode.UNKNOWN_MEMBER_ID]
    # Clients before version 3 do not say for whom they commit.
    assert await commit(client, ("t", 0, 5), version=2) == [ErrorCode.NONE]


@pytest.mark.parametrize("then", [ErrorCode.NONE, ErrorCode.INVALID_TXN_STATE], ids=lambda error: error.name)
async def test_a_transaction_that_ends_while_its_coordinator_is_asked_is_asked_about_again(client, then):
    """If it was this one, its marker is there already, and nobody would write another: readers of stable offsets would
    wait forever. It may have been the one before.
    """
    asked = asyncio.Queue()
    client.coordinator.verify = lambda *question: asked.put_nowait(question[-1])
    asking = asyncio.get_running_loop().create_task(commit(client, ("t", 0, 5), version=4))
    answer = await asked.get()
    await end(client, commit=False)
    answer({(CONSUMER_OFFSETS, 0): ErrorCode.NONE})
    (await asked.get())({(CONSUMER_OFFSETS, 0): then})
    assert await asking == [ErrorCode.TRANSACTION_ABORTABLE if then else ErrorCode.NONE]
    log = client.broker.replicas.find(CONSUMER_OFFSETS, 0).log
    assert (log.last_stable_offset == log.end_offset) is bool(then)


async def test_deleting_the_group_deletes_what_is_pending(client):
    await commit(client, ("t", 0, 5))
    errors = []
    client.broker.groups.delete_group("g", errors.append)
    assert errors == [ErrorCode.NONE]
    assert await stable(client) == NEVER
    await end(client, commit=True)
    assert await stable(client) == NEVER


@asynccontextmanager
async def started_again(folder):
    """A broker on the data of another, which has loaded its groups."""
    async with running(folder, offsets_topic_num_partitions=1) as broker, group_client(broker) as client:
        while (await stable(client))[1] == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            pass  # a client can only ask again
        yield client


async def test_pending_offsets_survive_a_restart_and_so_do_their_ends(tmp_path):
    async with coordinating(tmp_path / "data") as client:
        answer_for(client)
        await commit(client, ("t", 0, 5))
        await commit(client, ("t", 1, 6), producer_id=8)
        await commit(client, ("t", 2, 7), producer_id=9)
        await end(client, commit=True, producer_id=8)
        await end(client, commit=False, producer_id=9)
    async with started_again(tmp_path / "data") as client:
        assert [await stable(client, index) for index in range(3)] == [UNSTABLE, (6, ErrorCode.NONE), NEVER]
        await end(client, commit=True)
        assert await stable(client) == (5, ErrorCode.NONE)
    async with started_again(tmp_path / "data") as client:
        assert await stable(client) == (5, ErrorCode.NONE)
