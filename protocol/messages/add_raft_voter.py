"""AddRaftVoter: add a voter to the metadata quorum."""

from __future__ import annotations

from barnabas.protocol.schema import Bool, Int16, Int32, Message, String, Struct, UInt16, Uuid, field


class AddRaftVoterRequest(Message, versions="0-1", flexible="0+"):
    cluster_id: String | None = field("0+", nullable="0+")
    timeout_ms: Int32 = field("0+")
    voter_id: Int32 = field("0+")
    voter_directory_id: Uuid = field("0+")
    listeners: list[Listener] = field("0+")
    ack_when_committed: Bool = field("1+", default=True)


class Listener(Struct):
    name: String = field("0+")
    host: String = field("0+")
    port: UInt16 = field("0+")


class AddRaftVoterResponse(Message, versions="0-1", flexible="0+"):
    throttle_time_ms: Int32 = field("0+", default=0)
    error_code: Int16 = field("0+", default=0)
    error_message: String | None = field("0+", nullable="0+", default=None)
