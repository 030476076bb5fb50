"""One mistake: what it was, how to put it back, and a seed that shows what comes of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from barnabas.simulation.plan import Plan, draw
from barnabas.simulation.run import Result, run

SEEDS_TO_TRY: Final = 60


class CannotPlay(Exception):
    """The functions of compiled brokers cannot be replaced."""


class Replacement(NamedTuple):
    owner: Any
    name: str
    value: Any


@dataclass(frozen=True, slots=True)
class Exhibit:
    name: str
    title: str
    pointers: str
    page: str
    mistake: Callable[[], list[Replacement]]
    seed: int | None  # that shows it; None if none is known
    seconds: float = 15.0
    brokers: int | None = None
    weather: str | None = None  # in which it is looked for

    def plan(self, seed: int) -> Plan:
        return draw(seed, brokers=self.brokers, seconds=self.seconds, weather=self.weather)

    def play(self, seed: int) -> Result:
        """Run a seed with the mistake in place."""
        with put_back(self.mistake()):
            return run(self.plan(seed))

    def show(self) -> Result:
        """Run the seed that shows it. Any change of the brokers changes what a seed does: one of the next does, too."""
        first = self.seed or 1
        result = self.play(first)
        for seed in range(first + 1, first + SEEDS_TO_TRY):
            if result.findings:
                break
            result = self.play(seed)
        return result

    def find(self, seeds: Iterable[int]) -> int | None:
        """The first seed that shows it."""
        return next((seed for seed in seeds if self.play(seed).findings), None)


@contextmanager
def put_back(replacements: list[Replacement]) -> Iterator[None]:
    before = [(owner, name, getattr(owner, name)) for owner, name, _ in replacements]
    try:
        for owner, name, value in replacements:
            try:
                setattr(owner, name, value)
            except TypeError:
                raise CannotPlay("this Barnabas is compiled, and mistakes can be put into a plain one only") from None
        yield
    finally:
        for owner, name, value in before:
            setattr(owner, name, value)
