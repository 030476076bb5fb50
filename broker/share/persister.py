"""The state of share partitions, wherever it is kept: asks the share coordinator on this broker or on another one.

A request may name any partitions of one group. Each has its own coordinator, so a request is split by coordinators and
the answers are put together again. While a coordinator moves, the request is repeated for a while.
"""

from __future__ import annotations

from typing import Protocol

from barnabas.protocol.messages.delete_share_group_state import (
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
)
from barnabas.protocol.messages.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
)
from barnabas.protocol.messages.read_share_group_state import ReadShareGroupStateRequest, ReadShareGroupStateResponse
from barnabas.protocol.messages.read_share_group_state_summary import (
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
)
from barnabas.protocol.messages.write_share_group_state import (
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
)


class ShareState(Protocol):
    """What keeps the state of share partitions. Every partition that is named has a result, with its error.

    `Broker.share_state` is one. Nothing is raised: a coordinator that cannot be reached is an error in each result.
    """

    async def initialize(self, request: InitializeShareGroupStateRequest) -> InitializeShareGroupStateResponse: ...

    async def read(self, request: ReadShareGroupStateRequest) -> ReadShareGroupStateResponse: ...

    async def write(self, request: WriteShareGroupStateRequest) -> WriteShareGroupStateResponse: ...

    async def delete(self, request: DeleteShareGroupStateRequest) -> DeleteShareGroupStateResponse: ...

    async def read_summary(self, request: ReadShareGroupStateSummaryRequest) -> ReadShareGroupStateSummaryResponse: ...
