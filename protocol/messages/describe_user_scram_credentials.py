"""DescribeUserScramCredentials: list which SCRAM credentials users have."""

from __future__ import annotations

from barnabas.protocol.schema import Int8, Int16, Int32, Message, String, Struct, field


class DescribeUserScramCredentialsRequest(Message, versions="0", flexible="0+"):
    users: list[UserName] | None = field("0+", nullable="0+")


class UserName(Struct):
    name: String = field("0+")


class DescribeUserScramCredentialsResponse(Message, versions="0", flexible="0+"):
    throttle_time_ms: Int32 = field("0+", default=0)
    error_code: Int16 = field("0+", default=0)
    error_message: String | None = field("0+", nullable="0+", default=None)
    results: list[DescribeUserScramCredentialsResult] = field("0+")


class DescribeUserScramCredentialsResult(Struct):
    user: String = field("0+")
    error_code: Int16 = field("0+", default=0)
    error_message: String | None = field("0+", nullable="0+", default=None)
    credential_infos: list[CredentialInfo] = field("0+")


class CredentialInfo(Struct):
    mechanism: Int8 = field("0+")
    iterations: Int32 = field("0+")
