"""Apache Kafka and Barnabas side by side: the same scenario played to each, and what they answered compared.

A scenario is a function of a `Side` that yields answers. What has to differ between two brokers (ids that they chose,
the time of an append, the words of an error) is replaced by its meaning before answers are compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from barnabas.client.requests.admin import create_topics, new_topic
from barnabas.client.requests.data import LATEST, list_offsets
from barnabas.client.wire import Wire
from barnabas.protocol.api import ApiKey
from barnabas.protocol.frames import decode_answer, request_frame
from barnabas.protocol.schema import ZERO_UUID, Message, Struct
from tests.support.polling import pause

CLOSED = "the connection was closed"

# What a field holds is up to each broker; that it holds something is not.
NORMALISED: dict[str, Callable[[Any], Any]] = {
    "error_message": lambda text: "some words",
    "batch_index_error_message": lambda text: text is not None,
    "log_append_time_ms": lambda time: "a time" if time >= 0 else time,
    "producer_id": lambda producer_id: "an id" if producer_id >= 0 else producer_id,
    "session_id": lambda session_id: "a session" if session_id else session_id,
}


class Side:
    """One of the two brokers."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._names = {ZERO_UUID: ZERO_UUID}
        self._ids: dict[str, bytes] = {}
        self._partitions: dict[str, int] = {}
        self._wire = Wire("127.0.0.1", port)

    def close(self) -> None:
        self._wire.close()

    def ask(self, key: ApiKey, message: Message, version: int) -> Any:
        """The answer, or CLOSED; the next request then goes over a new connection."""
        self._wire.send(request_frame(key, message, version))
        body = self._wire.receive()
        if body is None:
            self._wire.close()
            self._wire = Wire("127.0.0.1", self.port)
            return CLOSED
        return decode_answer(body, key, version)

    def tell(self, key: ApiKey, message: Message, version: int) -> None:
        """Send what has no answer."""
        self._wire.send(request_frame(key, message, version))

    def create_topic(self, name: str, partitions: int = 1, configs: dict[str, str] | None = None) -> None:
        """Create a topic that does not exist yet."""
        if self.has_topic(name, partitions):
            return
        topic = new_topic(name, partitions, configs=list((configs or {}).items()))
        (created,) = self.ask(ApiKey.CREATE_TOPICS, create_topics(topic), 7).topics
        if created.error_code:
            raise AssertionError(f"{name}: {created.error_message}")
        self._ids[name], self._partitions[name] = created.topic_id, partitions
        self._names[created.topic_id] = name.encode()
        ends = list_offsets(*((name, index, LATEST) for index in range(partitions)))
        # Apache Kafka answers before the broker leads the new partitions, and only asking again shows that it does.
        while any(p.error_code for t in self.ask(ApiKey.LIST_OFFSETS, ends, 7).topics for p in t.partitions):
            pause()

    def topics_are(self, other: Side) -> None:
        """This broker has the topics of another, under the same ids."""
        self._ids.update(other._ids)
        self._names.update(other._names)

    def has_topic(self, name: str, partitions: int | None = None) -> bool:
        """Whether there is one, with so many partitions. Scenarios that share a broker share its topics."""
        known = self._partitions.get(name)
        if partitions is not None and known not in (partitions, None):
            raise AssertionError(f"{name} has {known} partitions for others: take another name")
        return name in self._ids

    def name(self, topic: str, by_id: bool) -> str | bytes:
        """How a request names a topic: by its name, or by the id that it has here."""
        return self._ids[topic] if by_id else topic

    def comparable(self, value: Any) -> Any:
        if isinstance(value, Struct):
            return {name: NORMALISED.get(name, self.comparable)(getattr(value, name)) for name in type(value).__slots__}
        if isinstance(value, list | tuple):
            return sorted((self.comparable(item) for item in value), key=repr)
        if isinstance(value, bytes | memoryview):
            return self._names.get(bytes(value), bytes(value))
        return value


Scenario = Callable[[Side], Iterator[Any]]


class SideBySide:
    def __init__(self, kafka: Side, barnabas: Side) -> None:
        self.kafka = kafka
        self.barnabas = barnabas

    def play(self, scenario: Scenario) -> None:
        """Play a scenario to both; what they answer differently is an AssertionError that names it, field by field."""
        theirs = [self.kafka.comparable(answer) for answer in scenario(self.kafka)]
        ours = [self.barnabas.comparable(answer) for answer in scenario(self.barnabas)]
        found = list(differences(theirs, ours))
        if found:
            raise AssertionError("\n".join(found))


def differences(theirs: Any, ours: Any, path: str = "answer") -> Iterator[str]:
    if isinstance(theirs, dict) and isinstance(ours, dict) and theirs.keys() == ours.keys():
        for name in theirs:
            yield from differences(theirs[name], ours[name], f"{path}.{name}")
    elif isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        for index, (their, our) in enumerate(zip(theirs, ours, strict=True)):
            yield from differences(their, our, f"{path}[{index}]")
    elif theirs != ours:
        yield f"{path}: Apache Kafka has {theirs!r}, Barnabas {ours!r}"
