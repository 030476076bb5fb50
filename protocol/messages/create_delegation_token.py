"""CreateDelegationToken: create a token that replaces its owner's credentials."""

from __future__ import annotations

from barnabas.protocol.schema import Bytes, Int16, Int32, Int64, Message, String, Struct, field


class CreateDelegationTokenRequest(Message, versions="1-3", flexible="2+"):
    owner_principal_type: String | None = field("3+", nullable="3+", default="")
    owner_principal_name: String | None = field("3+", nullable="3+", default="")
    renewers: list[CreatableRenewers] = field("0+")
    max_lifetime_ms: Int64 = field("0+")


class CreatableRenewers(Struct):
    principal_type: String = field("0+")
    principal_name: String = field("0+")


class CreateDelegationTokenResponse(Message, versions="1-3", flexible="2+"):
    error_code: Int16 = field("0+", default=0)
    principal_type: String = field("0+")
    principal_name: String = field("0+")
    token_requester_principal_type: String = field("3+", default="")
    token_requester_principal_name: String = field("3+", default="")
    issue_timestamp_ms: Int64 = field("0+")
    expiry_timestamp_ms: Int64 = field("0+")
    max_timestamp_ms: Int64 = field("0+")
    token_id: String = field("0+")
    hmac: Bytes = field("0+")
    throttle_time_ms: Int32 = field("0+", default=0)
