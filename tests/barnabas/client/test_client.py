"""The cluster behind a bootstrap list: finding brokers, and waiting for temporary errors to pass."""

import pytest

from barnabas.client.client import Client
from barnabas.client.connection import Address
from barnabas.client.errors import BrokerError, ConnectionLost, Unreachable
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from barnabas.protocol.topic_partition import TopicPartition
from tests.support.ports import HeldPort
from tests.support.scripted_broker import ScriptedBroker


def client_of(broker, *before):
    return Client([*before, Address("127.0.0.1", broker.port)], timeout=20)


@pytest.fixture
def nobody():
    """Makes addresses at which nothing listens."""
    held = []

    def make():
        held.append(HeldPort())
        return Address("127.0.0.1", held[-1].number)

    return make


def coordinator_found(broker, *errors):
    """Answers FindCoordinator with these errors, one after another, then with the broker itself."""
    remaining = list(errors)

    def answer(request):
        error = remaining.pop(0) if remaining else ErrorCode.NONE
        if error is None:
            return None
        found = Coordinator(
            key=request.coordinator_keys[0], node_id=0, host="127.0.0.1", port=broker.port, error_code=error
        )
        return FindCoordinatorResponse(coordinators=[found])

    broker.answers[ApiKey.FIND_COORDINATOR] = answer


def test_the_first_broker_that_answers_is_used(nobody):
    with ScriptedBroker() as broker, client_of(broker, nobody()) as client:
        assert client.brokers() == {0: Address("127.0.0.1", broker.port)}


def test_if_none_answers_all_are_named(nobody):
    first, second = nobody(), nobody()
    with pytest.raises(Unreachable, match=f"{first}: Connection refused; cannot connect to {second}"):
        Client([first, second]).any_broker()


def test_topics_are_sorted_and_a_missing_one_is_an_error():
    with ScriptedBroker() as broker, client_of(broker) as client:
        broker.partitions = {"b": 1, "a": 2}
        assert [topic.name for topic in client.topics(None)] == ["a", "b"]
        with pytest.raises(BrokerError, match=r"topic 'c': there is no such topic.*UNKNOWN_TOPIC_OR_PARTITION"):
            client.topics(["a", "c"])


def test_partitions_and_who_leads_them():
    with ScriptedBroker() as broker, client_of(broker) as client:
        broker.partitions = {"a": 2}
        broker.leaders = {1: -1}
        assert client.partitions(["a"]) == {TopicPartition("a", 0): 0, TopicPartition("a", 1): -1}
        assert client.partitions([]) == {}
        assert client.leaders([TopicPartition("a", 0)]) == {TopicPartition("a", 0): 0}


def test_a_partition_without_a_leader_is_waited_for():
    with ScriptedBroker() as broker, client_of(broker) as client:
        broker.leaders = {0: -1}
        with pytest.raises(BrokerError, match="partition t-0: LEADER_NOT_AVAILABLE"):
            client.leaders([TopicPartition("t", 0)])
        assert len(broker.requests(ApiKey.METADATA)) > 2


def test_a_missing_partition_is_not_waited_for():
    with ScriptedBroker() as broker, client_of(broker) as client:
        with pytest.raises(BrokerError, match=r"partition t-1: .*UNKNOWN_TOPIC_OR_PARTITION"):
            client.leaders([TopicPartition("t", 1)])
        assert len(broker.requests(ApiKey.METADATA)) == 1


def test_partitions_that_exist():
    with ScriptedBroker() as broker, client_of(broker) as client:
        asked = [TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("gone", 0)]
        assert client.existing(asked) == [TopicPartition("t", 0)]
        assert client.existing([]) == []


def test_a_coordinator_that_is_not_available_yet_is_waited_for():
    with ScriptedBroker() as broker, client_of(broker) as client:
        coordinator_found(broker, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        assert client.coordinator_of("g") == 0
        assert len(broker.requests(ApiKey.FIND_COORDINATOR)) == 3


def test_a_coordinator_is_remembered():
    with ScriptedBroker() as broker, client_of(broker) as client:
        coordinator_found(broker)
        assert client.coordinator("g") is client.coordinator("g")
        assert len(broker.requests(ApiKey.FIND_COORDINATOR)) == 1


def test_an_authorization_error_is_not_retried():
    with ScriptedBroker() as broker, client_of(broker) as client:
        coordinator_found(broker, ErrorCode.GROUP_AUTHORIZATION_FAILED)
        with pytest.raises(BrokerError, match="group 'g': GROUP_AUTHORIZATION_FAILED"):
            client.coordinator_of("g")
        assert len(broker.requests(ApiKey.FIND_COORDINATOR)) == 1


def test_an_error_that_persists_until_the_timeout_is_raised():
    with ScriptedBroker() as broker, client_of(broker) as client:
        broker.answers[ApiKey.FIND_COORDINATOR] = lambda request: FindCoordinatorResponse(
            coordinators=[Coordinator(key="g", node_id=-1, host="", port=-1, error_code=15)]
        )
        with pytest.raises(BrokerError, match="COORDINATOR_NOT_AVAILABLE"):
            client.coordinator_of("g")


def test_a_lost_connection_is_opened_again():
    with ScriptedBroker() as broker, client_of(broker) as client:
        coordinator_found(broker, None)
        client.metadata([])
        assert client.coordinator_of("g") == 0


def test_a_broker_that_never_answered_is_not_waited_for():
    with ScriptedBroker() as broker, client_of(broker) as client:
        coordinator_found(broker, None)
        with pytest.raises(ConnectionLost):
            client.coordinator_of("g")


def test_each_purpose_has_a_connection_of_its_own():
    with ScriptedBroker() as broker, client_of(broker) as client:
        assert client.broker(0) is client.broker(0)
        assert client.broker(0, "fetch") is not client.broker(0)
        first = client.broker(0)
        first.close()
        assert client.broker(0) is not first
        with pytest.raises(BrokerError, match="broker 7: there is no such broker"):
            client.broker(7)
