"""Answers with an error: every API and version, read by the project's own decoder."""

import pytest

from barnabas.broker.apis import served_by
from barnabas.broker.testing.faults.error_answers import error_answer, has_room, merge, split
from barnabas.client.requests.data import list_offsets, produce
from barnabas.protocol.api import ApiKey, request_type, response_type
from barnabas.protocol.decoder import decode
from barnabas.protocol.encoder import encode
from barnabas.protocol.error_counts import error_counts
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from barnabas.protocol.messages.join_group import JoinGroupResponse
from barnabas.protocol.messages.list_offsets import ListOffsetsResponse
from barnabas.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from tests.support.sample_messages import UUID, sample

ERROR = ErrorCode.KAFKA_STORAGE_ERROR
SERVED = served_by(None)
WITH_ROOM = [key for key in ApiKey if has_room(key)]


def forced(key, version, of_parts=False, request=None):
    """The answer after it has been encoded and decoded."""
    asked = request if request is not None else sample(request_type(key), version)
    answer = error_answer(key, version, asked, ERROR, of_parts=of_parts)
    return None if answer is None else decode(response_type(key), version, encode(answer, version))


@pytest.mark.parametrize("api", SERVED, ids=lambda api: api.key.api_name)
def test_every_api_that_is_served_has_room_for_an_error_in_every_version(api):
    for version in api.served:
        assert set(error_counts(forced(api.key, version))) == {ERROR}, version
        assert set(error_counts(forced(api.key, version, of_parts=True))) == {ERROR}, version


@pytest.mark.parametrize("key", WITH_ROOM, ids=lambda key: key.api_name)
def test_an_error_is_found_by_the_decoder_wherever_there_is_room_for_one(key):
    for version in request_type(key).versions:
        for of_parts in (False, True):
            answer = forced(key, version, of_parts)
            assert answer is None or set(error_counts(answer)) == {ERROR}, f"version {version}"


def test_an_affected_partition_is_named_as_in_the_request():
    answer = forced(ApiKey.PRODUCE, 9)
    (topic,) = answer.responses
    (partition,) = topic.partition_responses
    assert (topic.name, partition.index, partition.error_code, partition.base_offset) == ("name", 1, ERROR, -1)
    assert forced(ApiKey.PRODUCE, 13).responses[0].topic_id == UUID


def test_what_only_the_request_knows_is_not_repeated():
    answer = forced(ApiKey.LIST_OFFSETS, 7)
    (partition,) = answer.topics[0].partitions
    assert (partition.timestamp, partition.offset, partition.leader_epoch) == (-1, -1, -1)


def test_a_join_that_fails_has_the_members_id_and_no_generation():
    answer = forced(ApiKey.JOIN_GROUP, 9)
    assert isinstance(answer, JoinGroupResponse)
    assert (answer.error_code, answer.member_id, answer.generation_id, answer.members) == (ERROR, "name", -1, [])


def test_an_error_of_a_whole_group_goes_to_the_group_and_that_of_a_part_to_the_partition():
    (group,) = forced(ApiKey.OFFSET_FETCH, 8).groups
    assert (group.error_code, group.topics) == (ERROR, [])
    (group,) = forced(ApiKey.OFFSET_FETCH, 8, of_parts=True).groups
    assert group.error_code == 0
    assert group.topics[0].partitions[0].error_code == ERROR


def test_an_error_of_a_whole_request_goes_to_the_top_where_there_is_room():
    answer = forced(ApiKey.OFFSET_FETCH, 5)
    assert (answer.error_code, answer.topics) == (ERROR, [])
    assert forced(ApiKey.OFFSET_FETCH, 1).topics[0].partitions[0].error_code == ERROR


def test_a_group_whose_topics_are_all_asked_for_has_room_at_the_group_only():
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=None)])
    (group,) = forced(ApiKey.OFFSET_FETCH, 8, of_parts=True, request=request).groups
    assert (group.group_id, group.error_code) == ("g", ERROR)


def test_partitions_of_a_transaction_fail_one_by_one_in_old_versions():
    request = sample(AddPartitionsToTxnRequest, 3)
    answer = forced(ApiKey.ADD_PARTITIONS_TO_TXN, 3, request=request)
    (result,) = answer.results_by_topic_v3_and_below[0].results_by_partition
    assert (result.partition_index, result.partition_error_code) == (1, ERROR)


def test_a_coordinator_that_is_not_found_has_no_address():
    answer = forced(ApiKey.FIND_COORDINATOR, 2)
    assert (answer.error_code, answer.node_id, answer.port) == (ERROR, -1, -1)
    (coordinator,) = forced(ApiKey.FIND_COORDINATOR, 4).coordinators
    assert (coordinator.key, coordinator.error_code, coordinator.node_id) == ("name", ERROR, -1)


# --- parts of requests ---


def in_t_0(topic, partition):
    return (topic, partition) == ("t", 0)


def test_a_request_is_split_by_partition():
    request = produce(("t", 0, b"a"), ("t", 1, b"b"), ("u", 0, b"c"))
    taken = split(ApiKey.PRODUCE, request, in_t_0, lambda _: None)
    assert [(t.name, [p.index for p in t.partition_data]) for t in taken.topic_data] == [("t", [0])]
    assert [(t.name, [p.index for p in t.partition_data]) for t in request.topic_data] == [("t", [1]), ("u", [0])]


def test_a_request_that_is_about_something_else_stays_whole():
    request = produce(("t", 1, b"b"))
    assert split(ApiKey.PRODUCE, request, in_t_0, lambda _: None) is None
    assert request == produce(("t", 1, b"b"))


def test_a_topic_that_is_named_by_its_id_is_split_too():
    request = produce((UUID, 0, b"a"), (UUID, 1, b"b"))
    taken = split(ApiKey.PRODUCE, request, in_t_0, {UUID: "t"}.get)
    assert [p.index for p in taken.topic_data[0].partition_data] == [0]


def test_a_request_with_lists_in_lists_is_split():
    topics = [OffsetFetchRequestTopics(name="t", partition_indexes=[0, 1])]
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=topics)])
    taken = split(ApiKey.OFFSET_FETCH, request, in_t_0, lambda _: None)
    assert taken.groups[0].topics[0].partition_indexes == [0]
    assert request.groups[0].topics[0].partition_indexes == [1]


def test_affected_parts_are_merged_into_the_answer_for_the_others():
    request = list_offsets(("t", 0, -1), ("t", 1, -1), ("u", 0, -1))
    taken = split(ApiKey.LIST_OFFSETS, request, lambda topic, _: topic == "u", lambda _: None)
    errors = error_answer(ApiKey.LIST_OFFSETS, 5, taken, ERROR, of_parts=True)
    fine = error_answer(ApiKey.LIST_OFFSETS, 5, request, ErrorCode.NONE, of_parts=True)
    merged = merge(ApiKey.LIST_OFFSETS, fine, errors)
    assert isinstance(merged, ListOffsetsResponse)
    assert [(t.name, [p.error_code for p in t.partitions]) for t in merged.topics] == [("t", [0, 0]), ("u", [ERROR])]
    # A topic that is in both is one topic in the answer.
    again = merge(ApiKey.LIST_OFFSETS, merged, errors)
    assert [(t.name, len(t.partitions)) for t in again.topics] == [("t", 2), ("u", 2)]
    assert [(t.name, len(t.partitions)) for t in merged.topics] == [("t", 2), ("u", 1)]
