"""DescribeDelegationToken: list delegation tokens."""

from __future__ import annotations

from barnabas.protocol.schema import Bytes, Int16, Int32, Int64, Message, String, Struct, field


class DescribeDelegationTokenRequest(Message, versions="1-3", flexible="2+"):
    owners: list[DescribeDelegationTokenOwner] | None = field("0+", nullable="0+")


class DescribeDelegationTokenOwner(Struct):
    principal_type: String = field("0+")
    principal_name: String = field("0+")


class DescribeDelegationTokenResponse(Message, versions="1-3", flexible="2+"):
    error_code: Int16 = field("0+", default=0)
    tokens: list[DescribedDelegationToken] = field("0+")
    throttle_time_ms: Int32 = field("0+", default=0)


class DescribedDelegationToken(Struct):
    principal_type: String = field("0+")
    principal_name: String = field("0+")
    token_requester_principal_type: String = field("3+", default="")
    token_requester_principal_name: String = field("3+", default="")
    issue_timestamp: Int64 = field("0+")
    expiry_timestamp: Int64 = field("0+")
    max_timestamp: Int64 = field("0+")
    token_id: String = field("0+")
    hmac: Bytes = field("0+")
    renewers: list[DescribedDelegationTokenRenewer] = field("0+")


class DescribedDelegationTokenRenewer(Struct):
    principal_type: String = field("0+")
    principal_name: String = field("0+")
