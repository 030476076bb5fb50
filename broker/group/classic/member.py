"""A member of a group."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from barnabas.protocol.messages.join_group import JoinGroupResponse
from barnabas.protocol.messages.sync_group import SyncGroupResponse

AnswerJoin = Callable[[JoinGroupResponse], None]
AnswerSync = Callable[[SyncGroupResponse], None]
# An assignor that a member supports: the name that the group votes on, and the subscription in its own format.
Protocols = Sequence[tuple[str, bytes]]


class Member:
    """`answer_join` and `answer_sync` are set while the member waits for that answer."""

    __slots__ = (
        "answer_join",
        "answer_sync",
        "assignment",
        "client_host",
        "client_id",
        "group_instance_id",
        "heard_at_ms",
        "heard_elapsed_ms",
        "is_new",
        "member_id",
        "protocol_type",
        "protocols",
        "rebalance_timeout_ms",
        "session_timeout_ms",
    )

    def __init__(
        self,
        member_id: str,
        *,
        group_instance_id: str | None,
        client_id: str,
        client_host: str,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        protocol_type: str,
        protocols: Protocols,
        assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.session_timeout_ms = session_timeout_ms
        self.protocol_type = protocol_type
        self.protocols = list(protocols)
        self.assignment = assignment
        self.answer_join: AnswerJoin | None = None
        self.answer_sync: AnswerSync | None = None
        # It joined in the current rebalance, and cannot send heartbeats before that answers it.
        self.is_new = False
        self.heard_at_ms = 0  # by the wall clock, for people who look
        self.heard_elapsed_ms = 0  # by the timers' time

    @property
    def is_static(self) -> bool:
        return self.group_instance_id is not None

    @property
    def is_waiting(self) -> bool:
        """It waits for our answer, so its silence means nothing."""
        return self.answer_join is not None or self.answer_sync is not None

    def metadata(self, protocol: str | None) -> bytes:
        """Its subscription for the protocol of this name."""
        return next((metadata for name, metadata in self.protocols if name == protocol), b"")

    def votes_for(self, candidates: frozenset[str]) -> str:
        """The first of its protocols that all members have."""
        return next(name for name, _ in self.protocols if name in candidates)
