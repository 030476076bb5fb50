"""One simulated world: the time, the network, the registry, the machines, and what is known of all that happened."""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
import traceback
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Final, NoReturn

import structlog

from barnabas.broker.registry.registry import Change
from barnabas.simulation.determinism import determinism
from barnabas.simulation.loop import ProcessLoop, Scheduler
from barnabas.simulation.machine import Machine
from barnabas.simulation.network import Fabric, Socket
from barnabas.simulation.registry import RegistryServer, SimulatedSession
from barnabas.simulation.trace import Trace

# Where memory is a folder, files cost least.
_IN_MEMORY: Final = "/dev/shm"


class Finding(Exception):
    """A promise was broken."""

    def __init__(self, promise: str, what: str) -> None:
        super().__init__(f"{promise}: {what}")
        self.promise = promise
        self.what = what


class World:
    """Use it as a context: within, everything comes from the seed."""

    def __init__(self, seed: int | str) -> None:
        self.seed = seed
        self.scheduler = Scheduler(seed)
        self.trace = Trace()
        self.fabric = Fabric(self.scheduler)
        self.machines: dict[int, Machine] = {}
        self.findings: list[Finding] = []
        self.buried: list[object] = []  # what is left of dead processes; it must not be collected while others live
        self.on_tree_change: Callable[[int, SimulatedSession | None, Sequence[Change]], None] | None = None
        self.on_change: Callable[[str, bytes], None] | None = None  # told of each node of the tree that is new
        self._is_closed = False
        self._events = self.scheduler.process("events")
        self.registry = RegistryServer(self.fabric, self.scheduler.process("registry"))

    def __enter__(self) -> World:
        self.folder = tempfile.mkdtemp(
            prefix="barnabas-simulation-", dir=_IN_MEMORY if os.path.isdir(_IN_MEMORY) else None
        )
        self.trace.hidden = self.folder
        self._contexts = [determinism(self.scheduler), _logs_to(self._logged)]
        for context in self._contexts:
            context.__enter__()
        self.scheduler.on_exception = self._failed
        self.fabric.observe = self._arrived
        self.registry.observe = self._registry_changed
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        for machine in self.machines.values():
            machine.close()
        self.scheduler.close()
        self._is_closed = True
        self.scheduler.bury()
        for context in reversed(self._contexts):
            context.__exit__(None, None, None)
        shutil.rmtree(self.folder, ignore_errors=True)

    # --- time ---

    @property
    def now(self) -> float:
        return self.scheduler.now

    def later(self, delay: float, callback: Callable[[], object]) -> None:
        self._events.call_later(delay, callback)

    def at(self, when: float, callback: Callable[[], object]) -> None:
        self._events.call_at(when, callback)

    def run(self, seconds: float) -> None:
        self.scheduler.run(self._is_over, self.now + seconds)

    def run_until(self, condition: Callable[[], bool], within: float, look_every: float = 0.0) -> bool:
        """Whether it came true in time. What takes long to find out is looked at from time to time."""
        end = self.now + within
        if not look_every:
            self.scheduler.run(lambda: self._is_over() or condition(), end)
        else:
            while self.now < end and not self._is_over() and not condition():
                self.run(min(look_every, end - self.now))
        return condition()

    def _is_over(self) -> bool:
        return bool(self.findings)

    # --- what there is ---

    def add_machine(self, settings: Mapping[str, str]) -> Machine:
        broker_id = len(self.machines) + 1
        machine = self.machines[broker_id] = Machine(self, broker_id, dict(settings))
        return machine

    def registries(self) -> list[RegistryServer]:
        return [self.registry]

    def process(self, name: str) -> ProcessLoop:
        return self.scheduler.process(name)

    # --- what happens ---

    def happened(self, who: str, what: str, kind: str = "") -> None:
        if self._is_closed:
            return  # the last words of processes that are no more
        self.trace.note(self.now, who, what, kind)

    def found(self, promise: str, what: str) -> None:
        """A promise was broken: the run ends after this instant."""
        if not self._is_closed:
            self.happened("checker", f"{promise}: {what}", "finding")
            self.findings.append(Finding(promise, what))

    def _arrived(self, sock: Socket, data: bytes | bytearray) -> None:
        self.trace.arrived(self.scheduler.now, sock.label, data)

    def _registry_changed(self, zxid: int, session: SimulatedSession | None, changes: Sequence[Change]) -> None:
        who = "registry" if session is None else session.name
        if self.on_tree_change is not None:
            self.on_tree_change(zxid, session, changes)
        for path, node in changes:
            if self.on_change is not None and node is not None:
                self.on_change(path, node.data)
            self.happened(
                who,
                f"registry: {path} is gone" if node is None else f"registry: {path} = {_text(node.data)}",
                "registry",
            )

    def _failed(self, loop: ProcessLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        text = "".join(traceback.format_exception(error)) if error is not None else ""
        self.happened(loop.name, f"{context.get('message')}\n{text}", "traceback")
        self.found("no callback fails", f"{loop.name}: {context.get('message')}: {error!r}")

    def _logged(self, level: str, event: str, fields: dict[str, Any]) -> None:
        loop = _running_process()
        who = loop.name if loop is not None else "outside"
        error = fields.pop("exc_info", None) or None
        text = event + "".join(f", {key}={value}" for key, value in fields.items())
        if error:
            if not isinstance(error, BaseException):
                import sys

                error = sys.exc_info()[1]
            if error is not None:
                text += "\n" + "".join(traceback.format_exception(error))
        self.happened(who, text, level)
        if error is not None and level in ("error", "critical"):
            self.found("no traceback", f"{who}: {event}: {error!r}")


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.hex()


def _running_process() -> ProcessLoop | None:
    from asyncio import events

    loop = events._get_running_loop()
    return loop if isinstance(loop, ProcessLoop) else None


@contextmanager
def _logs_to(take: Callable[[str, str, dict[str, Any]], None]) -> Iterator[None]:
    """Have all log lines of brokers."""

    def capture(_: Any, level: str, event: MutableMapping[str, Any]) -> NoReturn:
        take("error" if level == "exception" else level, str(event.pop("event")), dict(event))
        raise structlog.DropEvent

    before = structlog.get_config()
    structlog.configure(
        processors=[capture],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        cache_logger_on_first_use=False,
    )
    try:
        yield
    finally:
        structlog.configure(**before)
