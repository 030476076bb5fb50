"""What an authorizer costs with a thousand access rules, for small Produces and Fetches: a lookup of the topic's name.

The same requests go to a broker that has one and to two that have none; what these two differ by is noise. What counts
is the CPU time of the broker's thread per request, because it depends least on what else the machine does, and its
ratio to that of the first broker within the same tenth of a second: other load then affects both.
"""

from __future__ import annotations

import statistics
import tempfile
import timeit
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from barnabas.broker.security.acls import Entry, Pattern
from barnabas.broker.security.authorizer import Authorizer
from barnabas.broker.security.principal import ANONYMOUS
from barnabas.client.requests.acls import Rule, create_acls, rule
from barnabas.client.wire import Wire
from barnabas.protocol.acls import AclOperation, PatternType, PermissionType, ResourceType
from barnabas.protocol.api import ApiKey
from benchmarks.broker import frames
from benchmarks.broker.small_requests import Load, connect, first_answer
from benchmarks.observers import CONNECTIONS, IN_FLIGHT, TOPIC, create_topic
from tests.support.broker_process import BrokerProcess

RULES: Final = 1000
TARGET: Final = 1.05
_TURN_SECONDS: Final = 0.04
_WARM_UP_TURNS: Final = 10
NOTHING, WITH_RULES = "no authorizer", f"{RULES} rules"
USER: Final = "User:ANONYMOUS"
AUTHORIZER: Final = {"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}


def main(quick: bool = False) -> None:
    with ExitStack() as brokers:
        started = {}
        for name, settings in ((NOTHING, {}), ("no authorizer again", {}), (WITH_RULES, AUTHORIZER)):
            folder = brokers.enter_context(tempfile.TemporaryDirectory(prefix="access-"))
            _prepare(folder, settings)
            started[name] = brokers.enter_context(BrokerProcess(folder, settings=settings))
        print(f"an authorizer with {RULES} rules; {CONNECTIONS} connections x {IN_FLIGHT} requests in flight")
        for title, request in _requests().items():
            _compare(started, title, request, turns=150 if quick else 500)
    _time_decisions()


def _time_decisions() -> None:
    """What a request pays for, by itself: this is so little that other load may hide it above."""
    authorizer = Authorizer((), allow_everyone=False)
    for made in _rules():
        pattern = Pattern(ResourceType(made.resource_type), made.name or "", PatternType(made.pattern_type))
        entry = Entry(
            made.principal or "", made.host or "", AclOperation(made.operation), PermissionType(made.permission)
        )
        authorizer.acls.put(pattern, authorizer.acls.entries(pattern) | {entry})
    access = authorizer.access(ANONYMOUS, "127.0.0.1")
    remembered = _quickest(lambda: access.writable_topics[TOPIC])
    decided = _quickest(lambda: access.decide(AclOperation.WRITE, ResourceType.TOPIC, TOPIC))
    print(f"  a decision that is remembered: {remembered * 1e6:.2f} us; one that is not: {decided * 1e6:.1f} us")


def _quickest(work: Callable[[], object]) -> float:
    return min(timeit.repeat(work, number=1000, repeat=50)) / 1000


def _requests() -> dict[str, bytes]:
    """The Produces come first, so that there is something to fetch."""
    return {
        "small Produces": frames.produce(TOPIC, frames.batch(frames.values(100, 1)[0])),
        "small Fetches": frames.fetch(TOPIC, 0, max_bytes=100),  # as Kafka, the first batch is sent whole
    }


def _compare(brokers: dict[str, BrokerProcess], title: str, request: bytes, turns: int) -> None:
    with ExitStack() as connections:
        loads = {name: _load(broker, request, connections) for name, broker in brokers.items()}
        taken: dict[str, list[float]] = {name: [] for name in brokers}
        for number in range(-_WARM_UP_TURNS, turns):
            for name in reversed(brokers) if number % 2 else brokers:
                cpu = _cpu_per_request(brokers[name], loads[name])
                if number >= 0:
                    taken[name].append(cpu)
    for name, each in taken.items():
        ratios = [cpu / first for cpu, first in zip(each, taken[NOTHING], strict=True)]
        ratio, error = statistics.median(ratios), 1.25 * statistics.stdev(ratios) / turns**0.5
        verdict = "" if name != WITH_RULES else f", target <= {TARGET}: {'met' if ratio <= TARGET else 'missed'}"
        print(
            f"  {title}, {name:20} {statistics.median(each) * 1e6:6.2f} us each ({ratio:.3f} +- {error:.3f}{verdict})"
        )


def _load(broker: BrokerProcess, request: bytes, connections: ExitStack) -> Load:
    sockets = {}
    for _ in range(CONNECTIONS):
        connection = connections.enter_context(connect(broker.port))
        sockets[connection.fileno()] = connection
        answer_size = first_answer(connection, request)
    return Load(sockets, request, answer_size, IN_FLIGHT)


def _cpu_per_request(broker: BrokerProcess, load: Load) -> float:
    before, answers = _cpu_seconds(broker), load.answers
    load.run(_TURN_SECONDS)
    load.drain()
    return (_cpu_seconds(broker) - before) / (load.answers - answers)


def _cpu_seconds(broker: BrokerProcess) -> float:
    """Of the broker's one thread, to the nanosecond."""
    return int(Path(f"/proc/{broker.process.pid}/schedstat").read_text().split()[0]) / 1e9


def _prepare(folder: str, settings: dict[str, str]) -> None:
    """Make the topic and the rules, as a super user, which the client is not afterwards."""
    as_super_user = {**settings, "super.users": USER} if settings else {}
    with BrokerProcess(folder, settings=as_super_user) as broker:
        create_topic(broker)
        if settings:
            with Wire("127.0.0.1", broker.port) as wire:
                wire.ask(ApiKey.CREATE_ACLS, create_acls(*_rules()), 3)


def _rules() -> list[Rule]:
    """A few are about this client and its topic; the others are about other users, topics and prefixes."""
    topic = ResourceType.TOPIC
    own = [
        rule(USER, AclOperation.WRITE, topic, TOPIC),
        rule(USER, AclOperation.READ, topic, TOPIC),
        rule("User:eve", AclOperation.ALL, topic, "*", permission=PermissionType.DENY),
        rule("User:*", AclOperation.DESCRIBE, topic, TOPIC[:3], pattern_type=PatternType.PREFIXED),
    ]
    others = [
        rule(
            f"User:user-{number % 50}",
            AclOperation.READ,
            topic,
            f"topic-{number}",
            pattern_type=PatternType.PREFIXED if number % 2 else PatternType.LITERAL,
        )
        for number in range(RULES - len(own))
    ]
    return own + others


if __name__ == "__main__":
    main(quick=True)
