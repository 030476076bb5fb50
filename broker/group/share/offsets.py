"""Where a share group begins to read: AlterShareGroupOffsets and DeleteShareGroupOffsets, for empty groups."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from functools import partial
from typing import NamedTuple

from barnabas.broker.coordinator.result import CoordinatorResult
from barnabas.broker.group.refused import Refused
from barnabas.broker.group.share.group import ShareGroup
from barnabas.broker.group.share.membership import ShareMembership
from barnabas.broker.group.share.partitions import NONE, NamedPartitions
from barnabas.broker.group.share.records import state_record
from barnabas.broker.group.share.states import Errors, States
from barnabas.broker.group.topics import Topics
from barnabas.broker.share.error_texts import text_of
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import alter_share_group_offsets as altering
from barnabas.protocol.messages import delete_share_group_offsets as deleting
from barnabas.protocol.schema import ZERO_UUID

AnswerAlter = Callable[[altering.AlterShareGroupOffsetsResponse], None]
AnswerDelete = Callable[[deleting.DeleteShareGroupOffsetsResponse], None]


def alter_error(error: ErrorCode, message: str | None = None) -> altering.AlterShareGroupOffsetsResponse:
    return altering.AlterShareGroupOffsetsResponse(error_code=error, error_message=message, responses=[])


def delete_error(error: ErrorCode, message: str | None = None) -> deleting.DeleteShareGroupOffsetsResponse:
    return deleting.DeleteShareGroupOffsetsResponse(error_code=error, error_message=message, responses=[])


class Alteration(NamedTuple):
    """What a request wants of the partitions that there are, and what it is answered if nothing fails."""

    starts: dict[bytes, dict[int, int]]
    asked: dict[bytes, NamedPartitions]
    response: altering.AlterShareGroupOffsetsResponse


def alteration(
    topics: Topics, wanted: Iterable[altering.AlterShareGroupOffsetsRequestTopic]
) -> Generator[None, None, Alteration]:
    """Yields after each partition: a request may name very many."""
    result = Alteration({}, {}, altering.AlterShareGroupOffsetsResponse(responses=[]))
    for topic in wanted:
        image = topics.topic(topic.topic_name)
        count = 0 if image is None else len(image.partitions)
        known: dict[int, int] = {}
        answers = []
        for each in topic.partitions:
            if 0 <= each.partition_index < count:
                known[each.partition_index] = each.start_offset
            answers.append(_altered(each.partition_index, count))
            yield
        if image is not None:
            result.asked[image.topic_id] = NamedPartitions(image.name, frozenset(known))
            if known:
                result.starts[image.topic_id] = known
        result.response.responses.append(
            altering.AlterShareGroupOffsetsResponseTopic(
                topic_name=topic.topic_name,
                topic_id=ZERO_UUID if image is None else image.topic_id,
                partitions=answers,
            )
        )
        yield
    return result


class ShareOffsets:
    def __init__(self, membership: ShareMembership, states: States, topics: Topics) -> None:
        self._membership = membership
        self._states = states
        self._topics = topics

    # --- alter ---

    def alter(self, group_id: str, wanted: Alteration, answer: AnswerAlter) -> CoordinatorResult:
        """Give partitions a new state that begins at an offset. The group and its partitions need not be there yet."""
        try:
            group = _empty(self._membership.begin(group_id))
        except Refused as refused:
            message, error = str(refused), refused.error
            return CoordinatorResult(done=lambda failure: answer(alter_error(failure or error, message)))
        starts, asked, response = wanted
        epoch = group.epoch

        def noted(error: ErrorCode) -> None:
            if error:
                answer(alter_error(error))
            elif not starts:
                answer(response)
            else:
                self._states.initialize(group_id, epoch, starts, initialized)

        def initialized(errors: Errors, failure: ErrorCode) -> None:
            if failure:
                answer(alter_error(failure))
                return
            for topic in response.responses:
                for partition in topic.partitions:
                    error = errors.get((topic.topic_id, partition.partition_index), ErrorCode.NONE)
                    if error:
                        partition.error_code, partition.error_message = error, text_of(error)
            answer(response)

        records = [state_record(group_id, group.state_partitions.begin(asked))] if asked else []
        return CoordinatorResult(records, noted, key=group_id)

    # --- delete ---

    def delete(self, request: deleting.DeleteShareGroupOffsetsRequest, answer: AnswerDelete) -> CoordinatorResult:
        """Forget how far the group has read topics. Another try finishes what a failure has left."""
        try:
            group = _empty(self._membership.existing(request.group_id))
        except Refused as refused:
            message, error = str(refused), refused.error
            return CoordinatorResult(done=lambda failure: answer(delete_error(failure or error, message)))
        state = group.state_partitions
        response = deleting.DeleteShareGroupOffsetsResponse(responses=[])
        wanted: dict[bytes, frozenset[int]] = {}
        names: dict[bytes, str] = {}
        if state is not NONE:
            for topic in request.topics:
                image = self._topics.topic(topic.topic_name)
                if image is not None and image.topic_id in state.initialized:
                    wanted[image.topic_id] = state.initialized[image.topic_id].partitions
                elif image is not None and image.topic_id in state.deleting:
                    wanted[image.topic_id] = frozenset(range(len(image.partitions)))
                else:
                    text = "There is no offset information to delete."
                    response.responses.append(_not_deleted(topic.topic_name, text if image else None))
                    continue
                names[image.topic_id] = topic.topic_name
        group_id = group.group_id

        def noted(error: ErrorCode) -> None:
            if error:
                answer(delete_error(error))
            elif not wanted:
                answer(response)
            else:
                self._states.delete(group_id, wanted, partial(self._deleted, group_id, names, response, answer))

        records = [] if state is NONE else [state_record(group_id, state.begin_deletion(wanted, self._topics))]
        return CoordinatorResult(records, noted, key=group_id)

    def _deleted(
        self,
        group_id: str,
        names: dict[bytes, str],
        response: deleting.DeleteShareGroupOffsetsResponse,
        answer: AnswerDelete,
        errors: Errors,
    ) -> None:
        gone = []
        failed: dict[bytes, ErrorCode] = {}
        for (topic_id, _), found in errors.items():
            if found:
                failed.setdefault(topic_id, found)
        for topic_id, name in names.items():
            error = failed.get(topic_id, ErrorCode.NONE)
            if not error:
                gone.append(topic_id)
            response.responses.append(
                deleting.DeleteShareGroupOffsetsResponseTopic(
                    topic_name=name,
                    topic_id=topic_id,
                    error_code=error,
                    error_message=text_of(error) if error else None,
                )
            )
        try:
            group = self._membership.existing(group_id)
        except Refused:
            answer(response)
            return
        record = state_record(group_id, group.state_partitions.finish_deletion(gone))

        def done(error: ErrorCode) -> None:
            answer(delete_error(error) if error else response)

        self._membership.carry_out(CoordinatorResult([record], done, key=group_id))


def _empty(group: ShareGroup) -> ShareGroup:
    if not group.is_empty:
        raise Refused(ErrorCode.NON_EMPTY_GROUP, f"Group {group.group_id} has members.")
    return group


def _altered(index: int, count: int) -> altering.AlterShareGroupOffsetsResponsePartition:
    error = ErrorCode.NONE if 0 <= index < count else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return altering.AlterShareGroupOffsetsResponsePartition(
        partition_index=index, error_code=error, error_message=text_of(error) if error else None
    )


def _not_deleted(name: str, message: str | None) -> deleting.DeleteShareGroupOffsetsResponseTopic:
    error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return deleting.DeleteShareGroupOffsetsResponseTopic(
        topic_name=name, topic_id=ZERO_UUID, error_code=error, error_message=message or text_of(error)
    )
