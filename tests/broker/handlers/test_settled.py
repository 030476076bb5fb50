"""What coordinators answer while replicas are slow, and when another broker takes over before they have caught up."""

import asyncio

import pytest

from barnabas.broker.group.kind import Committer
from barnabas.broker.group.records import CommittedOffset
from barnabas.client.requests import groups
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.describe_groups import DescribeGroupsRequest
from barnabas.protocol.messages.describe_transactions import DescribeTransactionsRequest
from barnabas.protocol.messages.list_groups import ListGroupsRequest
from barnabas.protocol.messages.list_transactions import ListTransactionsRequest
from barnabas.protocol.topic_partition import TopicPartition
from tests.broker.handlers import group_client
from tests.broker.transaction import client as transaction_client
from tests.broker.transaction.client import ID, add_request
from tests.support.running_broker import partition
from tests.support.slow_replicas import SlowReplicas

OFFSETS, STATE = "__consumer_offsets", "__transaction_state"


class Asked:
    """A request that is sent, and answered some time."""

    def __init__(self, client, key, message, version):
        self._client, self._key, self._version = client, key, version
        client.send(key, message, version)
        self._answer = asyncio.get_running_loop().create_task(self._wait())

    async def _wait(self):
        return (await self._client.client.answer(self._key, self._version))[1]

    async def waits(self):
        done, _ = await asyncio.wait([self._answer], timeout=0.05)
        return not done

    async def answer(self):
        return await asyncio.wait_for(self._answer, 60)


GROUP_QUESTIONS = {
    "OffsetFetch 7": (ApiKey.OFFSET_FETCH, lambda: groups.offset_fetch(7, {"g": [("t", [0])]}), 7),
    "OffsetFetch 9": (ApiKey.OFFSET_FETCH, lambda: groups.offset_fetch(9, {"g": None}), 9),
    "DescribeGroups": (ApiKey.DESCRIBE_GROUPS, lambda: DescribeGroupsRequest(groups=["g"]), 5),
    "ListGroups": (ApiKey.LIST_GROUPS, lambda: ListGroupsRequest(), 4),
    "OffsetCommit": (ApiKey.OFFSET_COMMIT, lambda: groups.offset_commit("g", ("t", 0, 6)), 8),
    "a refused OffsetCommit": (
        ApiKey.OFFSET_COMMIT,
        lambda: groups.offset_commit("g", ("t", 0, 6), member="m", generation=3),
        8,
    ),
    "OffsetDelete": (ApiKey.OFFSET_DELETE, lambda: groups.offset_delete("g", ("t", 0)), 0),
    "DeleteGroups": (ApiKey.DELETE_GROUPS, lambda: groups.delete_groups("g"), 2),
    "a refused DeleteGroups": (ApiKey.DELETE_GROUPS, lambda: groups.delete_groups("unknown"), 2),
    "LeaveGroup": (ApiKey.LEAVE_GROUP, lambda: groups.leave_group(5, "g", "unknown"), 5),
    "JoinGroup": (ApiKey.JOIN_GROUP, lambda: groups.join_group("g", ""), 9),
    "SyncGroup": (ApiKey.SYNC_GROUP, lambda: groups.sync_group("g", "m", 1, {}, **groups.BY_RANGE), 5),
}


def codes(message):
    """All error codes in an answer."""
    found = set()
    todo = [message]
    while todo:
        each = todo.pop()
        for name, value in vars(each).items() if hasattr(each, "__dict__") else fields(each):
            if name.endswith("error_code"):
                found.add(ErrorCode(value))
            elif isinstance(value, list):
                todo += [item for item in value if not isinstance(item, (str, int, bytes))]
    return found


def fields(message):
    return [(name, getattr(message, name)) for name in message.__slots__]


class TestGroups:
    @pytest.fixture
    async def client(self, tmp_path):
        async with group_client.coordinating(tmp_path) as client:
            yield client

    @pytest.fixture
    async def part(self, client):
        return partition(client.broker, OFFSETS)

    @pytest.fixture
    async def slow(self, client, part):
        """An offset of the group was decided, and is not committed."""
        await client.commit(("t", 0, 1))
        slow = SlowReplicas(part)
        offset = (TopicPartition("t", 0), CommittedOffset(5, -1, "", 0))
        client.broker.groups.commit("g", Committer("", None, -1), [offset], lambda error: None)
        return slow

    @pytest.mark.parametrize("question", GROUP_QUESTIONS)
    async def test_an_answer_waits_for_what_it_depends_on(self, client, part, slow, question):
        key, message, version = GROUP_QUESTIONS[question]
        asked = Asked(client, key, message(), version)
        assert await asked.waits()
        slow.commit(part)
        assert ErrorCode.NOT_COORDINATOR not in codes(await asked.answer())

    @pytest.mark.parametrize("told_first", [True, False])
    @pytest.mark.parametrize("question", GROUP_QUESTIONS)
    async def test_it_is_an_error_if_another_broker_coordinates_now(self, client, part, slow, question, told_first):
        key, message, version = GROUP_QUESTIONS[question]
        asked = Asked(client, key, message(), version)
        assert await asked.waits()
        slow.lose(part, client.broker.groups, told_first=told_first)
        answer = await asked.answer()
        if question == "ListGroups":
            assert answer.groups == []
        else:
            assert codes(answer) - {ErrorCode.NONE} == {ErrorCode.NOT_COORDINATOR}

    async def test_a_heartbeat_is_answered_at_once(self, client, slow):
        answer = await client.ask(ApiKey.HEARTBEAT, groups.heartbeat("g", "m", 1))
        assert answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID

    async def test_a_waiting_join_is_sent_to_the_next_coordinator(self, client, part):
        member = await client.stable()
        slow = SlowReplicas(part)
        client.send(ApiKey.JOIN_GROUP, groups.join_group("g", member, protocols=[("range", b"new")]))
        async with group_client.group_client(client.broker) as other:
            waiting = Asked(other, ApiKey.JOIN_GROUP, groups.join_group("g", "", group_instance_id="i"), 9)
            await waiting.waits()
            slow.lose(part, client.broker.groups)
            assert (await waiting.answer()).error_code in (ErrorCode.NOT_COORDINATOR, ErrorCode.NONE)
            assert (await other.join()).error_code == ErrorCode.NOT_COORDINATOR

    async def test_the_next_coordinator_continues_with_what_is_in_the_log(self, client, part, slow):
        slow.commit(part)
        slow.lose(part, client.broker.groups)
        assert await client.committed() == ErrorCode.NOT_COORDINATOR
        slow.lead_again(part, client.broker.groups)
        while (found := await client.committed()) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            pass
        assert found == {("t", 0): 5}


TRANSACTION_QUESTIONS = {
    "DescribeTransactions": (
        ApiKey.DESCRIBE_TRANSACTIONS,
        lambda producer: DescribeTransactionsRequest(transactional_ids=[ID]),
        0,
    ),
    "ListTransactions": (
        ApiKey.LIST_TRANSACTIONS,
        lambda producer: ListTransactionsRequest(state_filters=[], producer_id_filters=[]),
        0,
    ),
    "verify only": (
        ApiKey.ADD_PARTITIONS_TO_TXN,
        lambda producer: add_request(5, (ID, producer, [("t", 0), ("t", 1)], True)),
        5,
    ),
    "AddPartitionsToTxn": (
        ApiKey.ADD_PARTITIONS_TO_TXN,
        lambda producer: add_request(5, (ID, producer, [("t", 0)], False)),
        5,
    ),
    "EndTxn": (ApiKey.END_TXN, transaction_client.end_request, 5),
}


class TestTransactions:
    @pytest.fixture
    async def client(self, tmp_path):
        async with transaction_client.coordinating(tmp_path) as client:
            yield client

    @pytest.fixture
    async def producer(self, client):
        return await client.begin_transaction(("t", 0))

    @pytest.fixture
    async def slow(self, client, producer):
        """A partition was added to the transaction, which is not committed."""
        slow = SlowReplicas(partition(client.broker, STATE))
        client.broker.transactions.add_partitions(ID, *producer, [("t", 1)], lambda error: None)
        client.broker.transactions.carry_out()
        return slow

    @pytest.mark.parametrize("question", TRANSACTION_QUESTIONS)
    async def test_an_answer_waits_for_what_it_depends_on(self, client, producer, slow, question):
        """Nobody may write to a partition that a new coordinator would not know: the transaction would not end
        there."""
        key, message, version = TRANSACTION_QUESTIONS[question]
        asked = Asked(client, key, message(producer), version)
        assert await asked.waits()
        for _ in range(3):  # an end takes two writes
            slow.commit(partition(client.broker, STATE))
            await asyncio.sleep(0.01)
        assert codes(await asked.answer()) <= {ErrorCode.NONE}

    @pytest.mark.parametrize("told_first", [True, False])
    @pytest.mark.parametrize("question", TRANSACTION_QUESTIONS)
    async def test_it_is_an_error_if_another_broker_coordinates_now(self, client, producer, slow, question, told_first):
        key, message, version = TRANSACTION_QUESTIONS[question]
        asked = Asked(client, key, message(producer), version)
        assert await asked.waits()
        slow.lose(partition(client.broker, STATE), client.broker.transactions, told_first=told_first)
        answer = await asked.answer()
        if question == "ListTransactions":
            assert answer.transaction_states == []
        else:
            assert codes(answer) - {ErrorCode.NONE} == {ErrorCode.NOT_COORDINATOR}
