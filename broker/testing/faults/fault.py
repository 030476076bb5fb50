"""A fault: which requests it affects, what happens to them, and how long it lasts.

A fault is data (JSON, YAML or keyword arguments, the same names everywhere), checked completely when it is created: an
error names the field.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from fnmatch import fnmatchcase
from typing import Any, Final

from barnabas.broker.testing.faults.error_answers import has_room
from barnabas.broker.testing.subjects import (
    Subjects,
    names_groups,
    names_partitions,
    names_topics,
    names_transactions,
)
from barnabas.protocol.api import ApiKey, request_type
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.schema import Versions

# Answers in Fetch that concern the session and not a partition.
SESSION_ERRORS: Final = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)
_APIS: Final = {key.api_name.lower(): key for key in ApiKey}
_ACTIONS: Final = ("error", "close", "throttle_ms", "corrupt", "refuse_connections", "stop_ms")
_DELAYS: Final = ("delay_ms", "delay_answer_ms")
# What can be matched on a connection before its first request.
_ABOUT_CONNECTIONS: Final = ("nth", "probability", "seed", "times", "for_ms", "refuse_connections")


# Thirty years, which a timer can take.
_LONGEST_MS: Final = 10**12


class FaultError(ValueError):
    """An invalid fault: the problem, and the field."""

    def __init__(self, field_name: str, complaint: str) -> None:
        super().__init__(f"{field_name}: {complaint}")
        self.field = field_name


@dataclass(frozen=True)
class Spec:
    """A fault as it was requested. `*` and `?` in names are wildcards, as in a shell."""

    api: tuple[ApiKey, ...] = ()
    versions: Versions | None = None
    topic: str | None = None
    partition: int | None = None
    group: str | None = None
    transactional_id: str | None = None
    client_id: str | None = None
    principal: str | None = None
    nth: int = 1
    probability: float = 1.0
    seed: int = 0
    times: int | None = None
    for_ms: int | None = None
    delay_ms: int = 0
    delay_answer_ms: int = 0
    error: ErrorCode | None = None
    close: str | None = None
    throttle_ms: int | None = None
    corrupt: bool = False
    refuse_connections: bool = False
    stop_ms: int | None = None

    @property
    def of_parts(self) -> bool:
        """Whether this affects single topics or partitions rather than whole requests."""
        return self.topic is not None or self.partition is not None


def parse(data: Mapping[str, Any]) -> Spec:
    """Check a fault. Raises FaultError."""
    if not isinstance(data, Mapping):
        raise FaultError("fault", "must be a mapping of fields")
    known = {each.name for each in fields(Spec)}
    values = {}
    for name, value in data.items():
        if name not in known:
            raise FaultError(str(name), f"there is no such field; the fields are {', '.join(sorted(known))}")
        if value is not None:
            values[name] = _READERS[name](name, value)
    if "nth" in values:
        values.setdefault("times", 1)
    spec = Spec(**values)
    _check(spec, set(values))
    return spec


def _check(spec: Spec, given: set[str]) -> None:
    actions = [name for name in _ACTIONS if name in given and getattr(spec, name) not in (False, None)]
    if len(actions) > 1:
        raise FaultError(actions[1], f"cannot be combined with {actions[0]}: a fault has one effect")
    if not actions and not spec.delay_ms and not spec.delay_answer_ms:
        raise FaultError("error", f"the fault has no effect; give one of {', '.join((*_ACTIONS, *_DELAYS))}")
    if spec.refuse_connections:
        for name in sorted(given - set(_ABOUT_CONNECTIONS)):
            raise FaultError(name, "is not known when a connection is being made")
    for name, can, what in (
        ("topic", names_topics, "topics"),
        ("partition", names_partitions, "partitions"),
        ("group", names_groups, "groups"),
        ("transactional_id", names_transactions, "transactional ids"),
    ):
        for key in spec.api if name in given else ():
            # Partitions are in Metadata's answers, and that is where they can be at fault.
            if not can(request_type(key)) and not (key == ApiKey.METADATA and name == "partition"):
                raise FaultError(name, f"{key.api_name} names no {what}")
    for key in spec.api:
        if spec.error is not None and not has_room(key):
            raise FaultError("error", f"an answer of {key.api_name} has no room for an error")
        if spec.corrupt and key != ApiKey.FETCH:
            raise FaultError("api", f"corrupt is for Fetch: an answer of {key.api_name} has no records")
        if spec.versions is not None and not any(version in spec.versions for version in request_type(key).versions):
            raise FaultError("versions", f"{key.api_name} has none of these")


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise FaultError(name, f"must be text, not {value!r}")
    return value


def _number(lowest: int) -> Callable[[str, Any], int]:
    def read(name: str, value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or value < lowest:
            raise FaultError(name, f"must be a whole number from {lowest} on, not {value!r}")
        return value

    return read


def milliseconds(name: str, value: Any) -> int:
    if isinstance(value, float) and 0 < value <= _LONGEST_MS:
        value = max(1, round(value))
    whole = _number(1)(name, value)
    if whole > _LONGEST_MS:
        raise FaultError(name, f"must be {_LONGEST_MS} at most, not {value!r}")
    return whole


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise FaultError(name, f"must be true or false, not {value!r}")
    return value


def _probability(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
        raise FaultError(name, f"must be above 0 and at most 1, not {value!r}")
    return float(value)


def _seed(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise FaultError(name, f"must be a whole number, not {value!r}")
    return value


def api_named(name: str, value: Any) -> ApiKey:
    key = _APIS.get(value.lower()) if isinstance(value, str) else None
    if key is None:
        raise FaultError(name, f"no API is called {value!r}; names are Kafka's, as in Produce or OffsetCommit")
    return key


def _apis(name: str, value: Any) -> tuple[ApiKey, ...]:
    values = value if isinstance(value, list | tuple) else [value]
    if not values:
        raise FaultError(name, "is empty")
    return tuple(api_named(name, each) for each in values)


def _versions(name: str, value: Any) -> Versions:
    try:
        versions = Versions(value, value) if isinstance(value, int) else Versions.parse(str(value).strip())
    except ValueError:
        versions = Versions(0, -1)
    if isinstance(value, bool) or versions.highest < versions.lowest or versions.lowest < 0:
        raise FaultError(name, f"must be a version or a range of them, as 3, '3-7' or '9+', not {value!r}")
    return versions


def error_named(name: str, value: Any) -> ErrorCode:
    if isinstance(value, str) and value.upper() in ErrorCode.__members__:
        error = ErrorCode[value.upper()]
    elif isinstance(value, int) and not isinstance(value, bool) and value in ErrorCode._value2member_map_:
        error = ErrorCode(value)
    else:
        raise FaultError(name, f"{value!r} is not one of Kafka's error codes, such as NOT_LEADER_OR_FOLLOWER")
    if error == ErrorCode.NONE:
        raise FaultError(name, "NONE is not an error")
    return error


def _close(name: str, value: Any) -> str:
    if value not in ("before", "after"):
        raise FaultError(name, f"must be 'before' or 'after' the request is handled, not {value!r}")
    return str(value)


_READERS: Final[dict[str, Callable[[str, Any], Any]]] = {
    "api": _apis,
    "versions": _versions,
    "topic": _text,
    "partition": _number(0),
    "group": _text,
    "transactional_id": _text,
    "client_id": _text,
    "principal": _text,
    "nth": _number(1),
    "probability": _probability,
    "seed": _seed,
    "times": _number(1),
    "for_ms": milliseconds,
    "delay_ms": milliseconds,
    "delay_answer_ms": milliseconds,
    "error": error_named,
    "close": _close,
    "throttle_ms": milliseconds,
    "corrupt": _flag,
    "refuse_connections": _flag,
    "stop_ms": milliseconds,
}


@dataclass
class Fault:
    """An active fault: what was requested, and how often it applied."""

    number: int
    spec: Spec
    asked: dict[str, Any]
    seen: int = 0  # how many requests matched it
    hits: int = 0  # how many of those it affected
    over: bool = False
    _random: random.Random = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._random = random.Random(self.spec.seed)

    def is_about(self, key: ApiKey, version: int, client_id: str | None, principal: str, subjects: Subjects) -> bool:
        spec = self.spec
        return (
            (not spec.api or key in spec.api)
            and (spec.versions is None or version in spec.versions)
            and (spec.client_id is None or fnmatchcase(client_id or "", spec.client_id))
            and (spec.principal is None or fnmatchcase(principal, spec.principal))
            and (spec.group is None or any(fnmatchcase(group, spec.group) for group in subjects.groups))
            and (
                spec.transactional_id is None
                or any(fnmatchcase(each, spec.transactional_id) for each in subjects.transactional_ids)
            )
            and (not spec.of_parts or any(self.hits_part(topic, p) for topic, p in subjects.partitions))
        )

    def hits_part(self, topic: str | None, partition: int | None) -> bool:
        """Whether this affects a partition, or a topic as a whole (None)."""
        spec = self.spec
        if spec.topic is not None and (topic is None or not fnmatchcase(topic, spec.topic)):
            return False
        return spec.partition is None or partition is None or partition == spec.partition

    def fires(self) -> bool:
        """Whether it affects this request; counts it."""
        self.seen += 1
        if self.over or self.seen < self.spec.nth:
            return False
        if self.spec.probability < 1 and self._random.random() >= self.spec.probability:
            return False
        self.hits += 1
        if self.spec.times is not None and self.hits >= self.spec.times:
            self.over = True
        return True

    def describe(self) -> dict[str, Any]:
        return {"id": self.number, **self.asked, "seen": self.seen, "hits": self.hits, "over": self.over}
