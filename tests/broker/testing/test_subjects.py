"""What a message is about, derived from the names of its fields."""

import pytest

from barnabas.broker.testing.subjects import (
    names_groups,
    names_partitions,
    names_topics,
    names_transactions,
    subjects_of,
)
from barnabas.client.requests.data import fetch, produce
from barnabas.protocol.api import ApiKey, request_type
from barnabas.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from barnabas.protocol.messages.delete_groups import DeleteGroupsRequest
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest
from barnabas.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from tests.support.sample_messages import UUID, sample


def subjects(message, names=None):
    return subjects_of(message, (names or {}).get)


def test_produce_and_fetch_name_partitions():
    assert subjects(produce(("t", 0, b""), ("t", 2, b""), ("u", 1, b""))).partitions == [("t", 0), ("t", 2), ("u", 1)]
    assert subjects(fetch(("t", 3, 0))).partitions == [("t", 3)]


def test_a_topic_that_goes_by_its_id_gets_its_name():
    assert subjects(produce((UUID, 0, b"")), {UUID: "t"}).partitions == [("t", 0)]
    assert subjects(produce((UUID, 0, b""))).partitions == []


def test_a_topic_without_partitions_is_named_as_a_whole():
    config = CreatableTopicConfig(name="retention.ms", value="1")
    topic = CreatableTopic(name="t", num_partitions=3, replication_factor=1, assignments=[], configs=[config])
    assert subjects(CreateTopicsRequest(topics=[topic])).partitions == [("t", None)]
    assert subjects(DeleteTopicsRequest(topic_names=["t", "u"], timeout_ms=1)).topics == {"t", "u"}


def test_groups_and_transactions():
    assert subjects(HeartbeatRequest(group_id="g", generation_id=1, member_id="m")).groups == ["g"]
    assert subjects(DeleteGroupsRequest(groups_names=["g", "h"])).groups == ["g", "h"]
    assert subjects(sample(request_type(ApiKey.END_TXN), 3)).transactional_ids == ["name"]
    assert subjects(sample(request_type(ApiKey.ADD_PARTITIONS_TO_TXN), 3)).partitions == [("name", 1)]


def test_a_coordinator_is_looked_for_on_behalf_of_a_group_or_a_transaction():
    assert subjects(FindCoordinatorRequest(key="g")).groups == ["g"]
    assert subjects(FindCoordinatorRequest(key_type=1, coordinator_keys=["t"])).transactional_ids == ["t"]


@pytest.mark.parametrize(("kind", "topics", "groups"), [(2, {"x"}, []), (32, set(), ["x"]), (4, set(), [])])
def test_settings_may_be_a_topics_or_a_groups(kind, topics, groups):
    resource = DescribeConfigsResource(resource_type=kind, resource_name="x", configuration_keys=None)
    found = subjects(DescribeConfigsRequest(resources=[resource]))
    assert (found.topics, found.groups) == (topics, groups)


def test_what_an_api_can_name_is_known_without_a_message():
    assert names_topics(request_type(ApiKey.METADATA))
    assert not names_partitions(request_type(ApiKey.METADATA))
    assert not names_topics(request_type(ApiKey.HEARTBEAT))
    assert names_groups(request_type(ApiKey.FIND_COORDINATOR))
    assert names_transactions(request_type(ApiKey.PRODUCE))
