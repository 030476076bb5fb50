"""AlterUserScramCredentials: set or remove the SCRAM credentials of users."""

from __future__ import annotations

from barnabas.protocol.schema import Bytes, Int8, Int16, Int32, Message, String, Struct, field


class AlterUserScramCredentialsRequest(Message, versions="0", flexible="0+"):
    deletions: list[ScramCredentialDeletion] = field("0+")
    upsertions: list[ScramCredentialUpsertion] = field("0+")


class ScramCredentialDeletion(Struct):
    name: String = field("0+")
    mechanism: Int8 = field("0+")


class ScramCredentialUpsertion(Struct):
    name: String = field("0+")
    mechanism: Int8 = field("0+")
    iterations: Int32 = field("0+")
    salt: Bytes = field("0+")
    salted_password: Bytes = field("0+")


class AlterUserScramCredentialsResponse(Message, versions="0", flexible="0+"):
    throttle_time_ms: Int32 = field("0+", default=0)
    results: list[AlterUserScramCredentialsResult] = field("0+")


class AlterUserScramCredentialsResult(Struct):
    user: String = field("0+")
    error_code: Int16 = field("0+", default=0)
    error_message: String | None = field("0+", nullable="0+", default=None)
