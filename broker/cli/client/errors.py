"""What can go wrong between a command and the brokers. The text is what the user reads, one sentence each.

ClientError
  +-- Unreachable          nobody listens there
  +-- TimedOut             somebody does, and says nothing
  +-- ConnectionLost       the connection ended before the answer, or the answer makes no sense
  +-- NotSupported         the broker does not speak what the command needs
  +-- BrokerError          an answer with one of Kafka's error codes
"""

from __future__ import annotations

from typing import Final

from protocol.errors import ErrorCode


class ClientError(Exception):
    pass


class Unreachable(ClientError):
    pass


class TimedOut(ClientError):
    pass


class ConnectionLost(ClientError):
    pass


class NotSupported(ClientError):
    pass


class BrokerError(ClientError):
    """`subject` is what the error is about: topic 'orders', group 'billing'."""

    def __init__(self, code: int, subject: str, message: str | None = None) -> None:
        self.code = code
        self.retriable = code in _RETRIABLE
        name = name_of(code)
        message = (message or _EXPLANATIONS.get(name, "")).rstrip(".")
        super().__init__(f"{subject}: {message} ({name})" if message else f"{subject}: {name}")


def name_of(code: int) -> str:
    """Kafka's name of an error code; a later Kafka may have one that is not known here."""
    try:
        return ErrorCode(code).name
    except ValueError:
        return f"error {code}"


def check(code: int, subject: str, message: str | None = None) -> None:
    if code:
        raise BrokerError(code, subject, message)


_RETRIABLE: Final = frozenset(code for code in ErrorCode if code.retriable)

# For errors that people meet often and whose name alone does not help them.
_EXPLANATIONS: Final = {
    "UNKNOWN_TOPIC_OR_PARTITION": "there is no such topic or partition",
    "TOPIC_ALREADY_EXISTS": "it exists already",
    "NON_EMPTY_GROUP": "the group still has members",
    "GROUP_ID_NOT_FOUND": "there is no such group",
    "OFFSET_OUT_OF_RANGE": "the log does not have that offset",
    "MESSAGE_TOO_LARGE": "the topic's max.message.bytes does not allow batches this large",
    "UNSUPPORTED_COMPRESSION_TYPE": "the broker does not take this codec",
    "GROUP_SUBSCRIBED_TO_TOPIC": "the group still reads the topic",
    "INCONSISTENT_GROUP_PROTOCOL": "the other members share out partitions in another way than range",
    "GROUP_MAX_SIZE_REACHED": "the group is full",
    "NOT_ENOUGH_REPLICAS": "too few replicas are in sync",
}
