"""Leaders of partitions ask the coordinators of transactions, on this broker and on others."""

import asyncio

import pytest

from barnabas.broker.transaction.partition_adder import PartitionAdder
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)
from tests.broker.transaction.cluster import LOST, ME, OTHER, Cluster, Peers

T0, T1 = ("t", 0), ("t", 1)


class Local:
    def __init__(self):
        self.asked = []

    def verify(self, transactional_id, producer_id, producer_epoch, partitions, done):
        self.asked.append("verify")
        done(dict.fromkeys(partitions, ErrorCode.TRANSACTION_ABORTABLE))

    def add_partitions(self, transactional_id, producer_id, producer_epoch, partitions, done):
        self.asked.append("add")
        done(ErrorCode.NONE)


@pytest.fixture
def cluster():
    cluster = Cluster()
    cluster.lead(__transaction_state=[OTHER])
    return cluster


@pytest.fixture
def peers():
    return Peers(OTHER)


@pytest.fixture
def local():
    return Local()


@pytest.fixture
async def adder(cluster, local, peers):
    tasks = []
    yield PartitionAdder(
        ME, cluster, local, peers, lambda work: tasks.append(asyncio.get_running_loop().create_task(work)), lambda: 1000
    )
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def verify(adder, transactional_id="id", partitions=(T0,)):
    told = []
    adder.verify(transactional_id, 7, 3, partitions, told.append)
    return told


def add(adder, transactional_id="id", partitions=(T0,)):
    told = []
    adder.add_partitions(transactional_id, 7, 3, partitions, told.append)
    return told


def response(error_code=ErrorCode.NONE, **errors):
    """The errors of t-0, t-1, … for each id."""
    return AddPartitionsToTxnResponse(
        error_code=error_code,
        results_by_transaction=[
            AddPartitionsToTxnResult(
                transactional_id=transactional_id,
                topic_results=[
                    AddPartitionsToTxnTopicResult(
                        name="t",
                        results_by_partition=[
                            AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=error)
                            for index, error in enumerate(codes)
                        ],
                    )
                ],
            )
            for transactional_id, codes in errors.items()
        ],
    )


async def test_the_coordinator_of_this_broker_is_asked_directly(adder, cluster, local):
    cluster.lead(__transaction_state=[ME])
    assert verify(adder) == [{T0: ErrorCode.TRANSACTION_ABORTABLE}]
    assert add(adder, partitions=[T0, T1]) == [{T0: ErrorCode.NONE, T1: ErrorCode.NONE}]
    assert local.asked == ["verify", "add"]


@pytest.mark.parametrize("ask", [verify, add])
async def test_others_are_asked_over_the_wire(adder, peers, ask):
    told = ask(adder, partitions=[T0, T1])
    asked = await peers.answer(OTHER, response(id=[ErrorCode.NONE, ErrorCode.PRODUCER_FENCED]))
    assert told == [{T0: ErrorCode.NONE, T1: ErrorCode.PRODUCER_FENCED}]
    assert (asked.key, asked.version) == (ApiKey.ADD_PARTITIONS_TO_TXN, 5)
    (sent,) = asked.message.transactions
    assert (sent.transactional_id, sent.producer_id, sent.producer_epoch) == ("id", 7, 3)
    assert sent.verify_only == (ask is verify)
    assert [(topic.name, topic.partitions) for topic in sent.topics] == [("t", [0, 1])]


async def test_requests_that_accumulate_are_sent_together_but_each_id_only_once(adder, peers):
    first = add(adder, "a")
    asked = await peers.asked(OTHER)
    told = [add(adder, "b"), verify(adder, "c"), verify(adder, "b")]
    asked.answer.set_result(response(a=[ErrorCode.NONE]))
    asked = await peers.answer(OTHER, response(b=[ErrorCode.NONE], c=[ErrorCode.NONE]))
    assert [(each.transactional_id, each.verify_only) for each in asked.message.transactions] == [
        ("b", False),
        ("c", True),
    ]
    assert [len(each) for each in (first, *told)] == [1, 1, 1, 0]
    await peers.answer(OTHER, response(b=[ErrorCode.NONE]))
    assert told[2] == [{T0: ErrorCode.NONE}]


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (LOST, ErrorCode.NETWORK_EXCEPTION),
        (response(ErrorCode.CLUSTER_AUTHORIZATION_FAILED), ErrorCode.INVALID_TXN_STATE),
        (response(ErrorCode.REQUEST_TIMED_OUT), ErrorCode.REQUEST_TIMED_OUT),
        (response(), ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
async def test_errors_are_reported_for_each_partition(adder, peers, answer, error):
    told = verify(adder, partitions=[T0, T1])
    await peers.answer(OTHER, answer)
    assert told == [{T0: error, T1: error}]


async def test_while_nobody_coordinates_the_client_has_to_wait(adder, cluster):
    for leaders in ([-1], [4]):
        cluster.lead(__transaction_state=leaders)
        assert add(adder) == [{T0: ErrorCode.COORDINATOR_NOT_AVAILABLE}]
    cluster.delete("__transaction_state")
    assert add(adder) == [{T0: ErrorCode.COORDINATOR_NOT_AVAILABLE}]
