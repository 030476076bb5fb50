"""The states of a share group's partitions at the share coordinator: created before they are assigned, deleted with the
group. What was asked for is in the group's records, so that it can be asked for again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import structlog

from barnabas.broker.background import Background
from barnabas.broker.coordinator.result import CoordinatorResult
from barnabas.broker.group.kind import AnyGroup
from barnabas.broker.group.share.group import ShareGroup
from barnabas.broker.group.share.partitions import Partitions
from barnabas.broker.group.share.records import state_record
from barnabas.broker.group.topics import Topics
from barnabas.broker.server.pieces import spread
from barnabas.broker.share.persister import ShareState
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import delete_share_group_state as deleting
from barnabas.protocol.messages import initialize_share_group_state as initializing

log = structlog.get_logger()

# The offset at which each partition of each topic begins; -1 leaves that to the group's share.auto.offset.reset.
Starts = Mapping[bytes, Mapping[int, int]]
# For each partition that was asked about, its error.
Errors = Mapping[tuple[bytes, int], ErrorCode]


Initialized = Callable[[Errors, ErrorCode], None]


def _nothing(errors: Errors, failure: ErrorCode) -> None:
    pass


class States:
    """Asks the share coordinator for the groups of one coordinator partition."""

    def __init__(
        self,
        groups: Mapping[str, AnyGroup],
        share_state: ShareState,
        background: Background,
        topics: Topics,
        carry_out: Callable[[CoordinatorResult], None],
    ) -> None:
        self._groups = groups
        self._share_state = share_state
        self._background = background
        self._topics = topics
        self._carry_out = carry_out

    def initialize(self, group_id: str, epoch: int, starts: Starts, then: Initialized = _nothing) -> None:
        """Create states. `then` gets the error of each partition, and the error of noting that, if there is one."""
        self._background.start(self._initialize(group_id, epoch, starts, then))

    async def _initialize(self, group_id: str, epoch: int, starts: Starts, then: Initialized) -> None:
        request = initializing.InitializeShareGroupStateRequest(
            group_id=group_id,
            topics=[
                initializing.InitializeStateData(
                    topic_id=topic_id,
                    partitions=[
                        initializing.PartitionData(partition=index, state_epoch=epoch, start_offset=start)
                        async for index, start in spread(sorted(partitions.items()))
                    ],
                )
                async for topic_id, partitions in spread(starts.items())
            ],
        )
        response = await self._share_state.initialize(request)
        errors = _errors(response.results)
        failed = any(errors.values())
        if failed:
            log.warning("states of share partitions are not initialized", group=request.group_id)
        asked = _partitions(errors)
        group = self._groups.get(request.group_id)
        if not isinstance(group, ShareGroup):
            then(errors, ErrorCode.GROUP_ID_NOT_FOUND)
            return
        state = group.state_partitions
        state = state.give_up(asked) if failed else state.complete(asked, self._topics)
        record = state_record(group.group_id, state)
        self._carry_out(CoordinatorResult([record], lambda error: then(errors, error), key=group.group_id))

    def delete(self, group_id: str, partitions: Partitions, then: Callable[[Errors], None]) -> None:
        """Delete states. `then` gets the error of each partition."""
        request = deleting.DeleteShareGroupStateRequest(
            group_id=group_id,
            topics=[
                deleting.DeleteStateData(
                    topic_id=topic_id, partitions=[deleting.PartitionData(partition=index) for index in sorted(indexes)]
                )
                for topic_id, indexes in partitions.items()
            ],
        )
        self._background.start(self._delete(request, then))

    async def _delete(self, request: deleting.DeleteShareGroupStateRequest, then: Callable[[Errors], None]) -> None:
        response = await self._share_state.delete(request)
        then(_errors(response.results))


def first_error(errors: Errors) -> ErrorCode:
    return next((error for error in errors.values() if error), ErrorCode.NONE)


def _errors(results: Iterable[Any]) -> Errors:
    return {
        (topic.topic_id, partition.partition): ErrorCode(partition.error_code)
        for topic in results
        for partition in topic.partitions
    }


def _partitions(errors: Errors) -> Partitions:
    found: dict[bytes, set[int]] = {}
    for topic_id, index in errors:
        found.setdefault(topic_id, set()).add(index)
    return {topic_id: frozenset(indexes) for topic_id, indexes in found.items()}
