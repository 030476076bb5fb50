"""barnabas.broker.cluster.writes: decisions, and a registry that does not answer."""

from types import SimpleNamespace

import pytest

from barnabas.broker.cluster.writes import Deposed, Writes
from barnabas.broker.controller.results import Decision
from barnabas.broker.registry.errors import RegistryUnavailable, SessionExpired
from barnabas.broker.registry.tree_operations import Set


class Registry:
    """Carries out what it is told, but its answer is lost. Its view shows a node when that is read again."""

    def __init__(self):
        self.node = self.shown = "old"
        self.failure = RegistryUnavailable("no answer")

    async def multi(self, operations):
        self.node = "new"
        raise RegistryUnavailable("no answer")

    async def refresh(self, path):
        assert path == "/node"
        if self.failure is not None:
            raise self.failure
        self.shown = self.node


@pytest.fixture
def registry():
    return Registry()


@pytest.fixture
def deposed():
    return []


@pytest.fixture
async def writes(registry, deposed):
    """One of its writes may have happened or not."""
    writes = Writes(registry, SimpleNamespace(revision=1), 1, lambda: deposed.append(True))
    with pytest.raises(RegistryUnavailable):
        await writes.carry_out(lambda: Decision(["written"], [Set("/node", b"new")]))
    return writes


async def test_a_refusal_waits_until_the_view_shows_what_was_written(registry, writes):
    def refuse():
        return Decision([f"refused, it is {registry.shown}"], [])

    with pytest.raises(RegistryUnavailable):
        await writes.carry_out(refuse)
    registry.failure = None
    assert await writes.carry_out(refuse) == ["refused, it is new"]


async def test_a_session_that_is_over_decides_nothing(registry, writes, deposed):
    registry.failure = SessionExpired("over")
    with pytest.raises(Deposed):
        await writes.carry_out(lambda: Decision(["refused"], []))
    assert deposed


async def test_a_term_that_ends_meanwhile_decides_nothing(registry, writes):
    async def refresh(path):
        writes.ended = True

    registry.refresh = refresh
    with pytest.raises(Deposed):
        await writes.carry_out(lambda: Decision(["refused"], []))
