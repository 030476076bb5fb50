"""What a check is, and how rooms collect checks.

A room is a module of `barnabas.conformance.rooms`. A check is a function in it whose docstring is the rule in one
sentence:

    @room.check("bad-checksum", "KIP-98", "Produce", "ListOffsets")
    def bad_checksum(probe: Probe) -> None:
        '''A batch whose checksum does not match is refused with CORRUPT_MESSAGE, and nothing is appended.'''
        ...

Its name, `produce.bad-checksum`, never changes: people use it in `--only` and in their own reports.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from barnabas.protocol.api import ApiKey
from barnabas.protocol.schema import Versions

if TYPE_CHECKING:
    from barnabas.conformance.probe import Probe

    Body = Callable[[Probe], None]

_KEYS: Final = {key.api_name: key for key in ApiKey}


@dataclass(frozen=True)
class Check:
    name: str
    rule: str
    stands_on: str
    """The KIP or the section of Kafka's protocol guide that the rule is based on."""
    needs: Mapping[ApiKey, Versions]
    """The requests that it sends; the broker must advertise one of these versions of each."""
    features: Mapping[str, int]
    """Finalized features (KIP-584) and the minimum level of each."""
    alone: bool
    """Whether it would disturb other checks; if so, it runs alone, after them."""
    body: Body

    @property
    def room(self) -> str:
        return self.name.partition(".")[0]


@dataclass
class Room:
    name: str
    title: str
    checks: list[Check] = field(default_factory=list)

    def check(
        self, name: str, stands_on: str, *needs: str, features: Mapping[str, int] | None = None, alone: bool = False
    ) -> Callable[[Body], Body]:
        """Each need is the name of an API, with versions if not all of them will do: "Fetch", "Fetch 13+"."""

        def add(body: Body) -> Body:
            rule = " ".join((body.__doc__ or "").split())
            self.add(name, rule, stands_on, body, dict(map(parse_need, needs)), features, alone)
            return body

        return add

    def add(
        self,
        name: str,
        rule: str,
        stands_on: str,
        body: Body,
        needs: Mapping[ApiKey, Versions],
        features: Mapping[str, int] | None = None,
        alone: bool = False,
    ) -> None:
        self.checks.append(Check(f"{self.name}.{name}", rule, stands_on, needs, features or {}, alone, body))


def parse_need(text: str) -> tuple[ApiKey, Versions]:
    name, _, versions = text.partition(" ")
    return _KEYS[name], Versions.parse(versions or "0+")


def rooms() -> list[Room]:
    """All rooms, in report order. Imported lazily, because the rooms import this module."""
    from barnabas.conformance.rooms import ROOMS

    return ROOMS
