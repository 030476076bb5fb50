"""RemoveRaftVoter: remove a voter from the metadata quorum."""

from __future__ import annotations

from barnabas.protocol.schema import Int16, Int32, Message, String, Uuid, field


class RemoveRaftVoterRequest(Message, versions="0", flexible="0+"):
    cluster_id: String | None = field("0+", nullable="0+")
    voter_id: Int32 = field("0+")
    voter_directory_id: Uuid = field("0+")


class RemoveRaftVoterResponse(Message, versions="0", flexible="0+"):
    throttle_time_ms: Int32 = field("0+", default=0)
    error_code: Int16 = field("0+", default=0)
    error_message: String | None = field("0+", nullable="0+", default=None)
