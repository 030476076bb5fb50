"""Sequential nodes with which brokers tell each other that something in the registry has changed.

They are of no use after a quarter of an hour: a broker that was away for longer has lost its session, and reads
everything again with the next one. Every broker removes those that it has known about for that long.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from typing import Any, Final

from barnabas.broker.clock import Clock, Later
from barnabas.broker.registry.errors import Conflict
from barnabas.broker.registry.registry import Change, Node, Registry
from barnabas.broker.registry.tree_operations import Delete

_KEPT_MS: Final = 15 * 60 * 1000


class Announcements:
    """Those below one path."""

    def __init__(
        self,
        path: str,
        clock: Clock,
        spawn: Callable[[Coroutine[Any, Any, None]], None],
        on_new: Callable[[Sequence[tuple[str, Node]]], None] | None = None,
    ) -> None:
        """`spawn` runs work in the background; `on_new` is called with announcements that were made meanwhile."""
        self._path = path
        self._clock = clock
        self._spawn = spawn
        self._on_new = on_new
        self._registry: Registry | None = None
        self._unwatch: Callable[[], None] | None = None
        self._known: dict[str, int] = {}  # and since when
        self._purging = Later(clock, lambda: _KEPT_MS, self._purge)

    def follow(self, registry: Registry) -> None:
        """Follow them in a new session. Those that already exist are old news."""
        self.stop()
        self._registry = registry
        self._unwatch = registry.watch(self._path, self._on_changes)
        names = registry.children(self._path) if registry.find(self._path) is not None else []
        self._note([f"{self._path}/{name}" for name in names])

    def stop(self) -> None:
        if self._unwatch is not None:
            self._unwatch()
            self._unwatch = None
        self._known.clear()
        self._purging.cancel()

    def _on_changes(self, changes: Sequence[Change]) -> None:
        new = [
            (path, node)
            for path, node in changes
            if node is not None and path != self._path and path not in self._known
        ]
        for path, node in changes:
            if node is None:
                self._known.pop(path, None)
        self._note([path for path, _ in new])
        if new and self._on_new is not None:
            self._on_new(new)

    def _note(self, paths: Iterable[str]) -> None:
        now = self._clock.now_ms()
        was_empty = not self._known
        self._known |= dict.fromkeys(paths, now)
        if was_empty and self._known:
            self._purging.start()

    def _purge(self) -> None:
        end = self._clock.now_ms() - _KEPT_MS
        old = [path for path, seen in self._known.items() if seen <= end]
        for path in old:
            del self._known[path]
        if self._known:
            self._purging.start()
        if self._registry is not None and old:
            self._spawn(_remove(self._registry, old))


async def _remove(registry: Registry, paths: Sequence[str]) -> None:
    for path in paths:
        with suppress(Conflict):  # another broker was faster
            await registry.multi([Delete(path)])
