"""Requests that are as full as a message may be: every array of every API, of short texts, long ones and known names.

    python -m tests.fuzz.full                # each API in its highest version, and the longest turn of the loop for it
    python -m tests.fuzz.full --only ListGroups --stacks

The fuzzer's frames are mostly short. These show work that grows with what a request contains.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from barnabas.broker.group.topics import MOST_NAMES
from barnabas.client.requests import admin
from barnabas.client.wire import Wire
from barnabas.protocol.api import ApiKey, request_type
from barnabas.protocol.decoder import MOST_BYTES, MOST_ELEMENTS
from barnabas.protocol.frames import request_frame
from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from barnabas.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from barnabas.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from barnabas.protocol.schema import STRING, Message, Struct, StructType, wire_types
from tests.fuzz.broker import BrokerUnderTest
from tests.fuzz.turns import LONG
from tests.fuzz.values import Values
from tests.fuzz.world import World

_KNOWN_TOPICS = 200  # each has one partition


class Request(NamedTuple):
    what: str
    frame: bytes


class Filling(NamedTuple):
    """What an array is filled with."""

    name: str
    count: int
    text: str  # before the number of the element

    def element(self, number: int) -> str:
        if self.name == "known":
            return f"known-{number % _KNOWN_TOPICS}"
        return f"{self.text}{number:x}"


# Just below what a message may have. More of either is refused before it is decoded.
_ELEMENTS = MOST_ELEMENTS - 10
_TEXT = MOST_BYTES - 100_000
FILLINGS = (
    Filling("short", MOST_ELEMENTS, ""),
    Filling("long", MOST_ELEMENTS, "x" * 1000),
    Filling("longest", MOST_ELEMENTS, "x" * 32_000),
    Filling("known", MOST_ELEMENTS, ""),
)


def arrays(struct: StructType, version: int) -> Iterator[tuple[str, ...]]:
    """The paths of all arrays that have texts in them."""
    for name, wire_type in wire_types(struct).items():
        if version in struct.fields[name].versions and isinstance(wire_type, list):
            (element,) = wire_type
            if element is STRING:
                yield (name,)
            elif isinstance(element, StructType):
                if any(each is STRING for each in wire_types(element).values()):
                    yield (name,)
                yield from ((name, *rest) for rest in arrays(element, version))


def full(key: ApiKey, version: int, path: tuple[str, ...], filling: Filling) -> Message:
    """A request whose other fields make sense more often than not, and where that array is full."""
    values = Values(Random(f"{key}/{path}"), World())
    message: Any = values.message(request_type(key), version)
    struct: Any = request_type(key)
    parent = message
    for name in path[:-1]:
        (struct,) = wire_types(struct)[name]
        element = values._struct(struct, version)
        setattr(parent, name, [element])
        parent = element
    (element_type,) = wire_types(struct)[path[-1]]
    elements: list[Any] = []
    weight = _weight(message)
    for number in range(filling.count):
        text = filling.element(number)
        element = text if element_type is STRING else _element(values, element_type, version, text)
        weight += _weight([element])
        if weight.elements > _ELEMENTS or weight.text > _TEXT:
            break
        elements.append(element)
    setattr(parent, path[-1], elements)
    return message


def _element(values: Values, struct: Any, version: int, text: str) -> Any:
    """An element with its first text set; arrays in it are as short as they may be."""
    element = values._struct(struct, version)
    for name, wire_type in wire_types(struct).items():
        if version not in struct.fields[name].versions:
            continue
        if wire_type is STRING and text:
            setattr(element, name, text)
            text = ""
        elif isinstance(wire_type, list):
            setattr(element, name, (getattr(element, name) or [])[:1])
    return element


class Weight(NamedTuple):
    """What the decoder counts: the elements of all arrays, and the bytes of all texts."""

    elements: int
    text: int

    def __add__(self, other: Weight) -> Weight:  # type: ignore[override]
        return Weight(self.elements + other.elements, self.text + other.text)


def _weight(value: Any) -> Weight:
    if isinstance(value, str):
        return Weight(0, len(value.encode()))
    if isinstance(value, bytes):
        return Weight(0, len(value))
    if isinstance(value, list):
        return sum(map(_weight, value), Weight(len(value), 0))
    if isinstance(value, Struct):
        return sum((_weight(getattr(value, name)) for name in type(value).fields), Weight(0, 0))
    return Weight(0, 0)


def requests(only: str) -> Iterator[Request]:
    for key in ApiKey:
        if only and key.api_name != only:
            continue
        version = request_type(key).versions.highest
        for path in arrays(request_type(key), version):
            for filling in FILLINGS:
                what = f"{key.api_name}.{'.'.join(path)}, {filling.name}"
                message = full(key, version, path, filling)
                yield Request(what, request_frame(key, message, version))
    for kind, (key, heartbeat) in _HEARTBEATS.items():
        if only and key.api_name != only:
            continue
        version = request_type(key).versions.highest
        for filling in FILLINGS[0], FILLINGS[3]:
            names = list(dict.fromkeys(filling.element(number) for number in range(MOST_NAMES)))
            for member in range(3):
                message = heartbeat(f"{kind} {filling.name}", f"m{member}", names)
                what = f"{key.api_name}, {filling.name}, member {member + 1}"
                yield Request(what, request_frame(key, message, version))


def _consumer(group: str, member: str, names: list[str]) -> Message:
    return ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id=member,
        member_epoch=0,
        rebalance_timeout_ms=1000,
        subscribed_topic_names=names,
        topic_partitions=[],
    )


def _share(group: str, member: str, names: list[str]) -> Message:
    return ShareGroupHeartbeatRequest(group_id=group, member_id=member, member_epoch=0, subscribed_topic_names=names)


_HEARTBEATS: dict[str, tuple[ApiKey, Callable[[str, str, list[str]], Message]]] = {
    "consumer": (ApiKey.CONSUMER_GROUP_HEARTBEAT, _consumer),
    "share": (ApiKey.SHARE_GROUP_HEARTBEAT, _share),
}


class Sent(NamedTuple):
    outcome: str
    longest_turn: float  # of the loop until the request has been answered and forgotten, in seconds


def send(broker: BrokerUnderTest, request: Request) -> Sent:
    broker.longest_turn.take()
    with Wire("127.0.0.1", broker.port, timeout=10) as wire:
        try:
            wire.send(request.frame)
            outcome = "closed" if wire.receive() is None else "answered"
        except TimeoutError:
            outcome = "waits"
        except OSError:
            outcome = "closed"
    another = ApiVersionsRequest(client_software_name="full", client_software_version="1")
    with Wire("127.0.0.1", broker.port) as wire:
        for _ in range(10):  # what the request leaves behind is freed in turns to come
            wire.ask(ApiKey.API_VERSIONS, another, 3)
            time.sleep(0.01)
    return Sent(outcome, broker.longest_turn.take())


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.full", description=__doc__)
    parser.add_argument("--only", default="", metavar="API", help="this API: ListGroups")
    parser.add_argument("--stacks", action="store_true", help="what the loop was doing in turns of more than 20 ms")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="full-") as folder:
        broker = BrokerUnderTest(Path(folder))
        broker.start()
        try:
            with Wire("127.0.0.1", broker.port) as wire:
                topics = admin.create_topics(*[admin.new_topic(f"known-{number}") for number in range(_KNOWN_TOPICS)])
                wire.ask(ApiKey.CREATE_TOPICS, topics, request_type(ApiKey.CREATE_TOPICS).versions.highest)
            slow = 0
            for request in requests(options.only):
                sent = send(broker, request)
                slow += sent.longest_turn > LONG
                print(f"{sent.longest_turn * 1000:6.1f} ms  {sent.outcome:8}  {request.what}", flush=True)
            tracebacks = broker.new_tracebacks()
        finally:
            broker.kill()
        print(f"{slow} of them had a turn of more than {LONG * 1000:.0f} ms")
        print("\n".join(tracebacks))
        if options.stacks:
            stacks = Path(folder) / "turns.stacks"
            print(stacks.read_text() if stacks.exists() else "")
    return 1 if tracebacks else 0


if __name__ == "__main__":
    sys.exit(main())
