"""A registry that has its tree in memory: reads come from there, and changes to it are reported to watchers."""

import asyncio
from collections.abc import Callable, Sequence
from typing import NamedTuple

from barnabas.broker.registry.registry import Change, Node, Registry, WatchCallback
from barnabas.broker.registry.tree import ROOT, Tree


class _Watch(NamedTuple):
    path: str
    below: str
    callback: WatchCallback


class TreeRegistry(Registry):
    """Subclasses change `tree`, and then call `notify`."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self._watches: list[_Watch] = []

    def find(self, path: str) -> Node | None:
        return self.tree.find(path)

    def get(self, path: str) -> Node:
        return self.tree.get(path)

    def children(self, path: str) -> list[str]:
        return self.tree.children(path)

    def watch(self, path: str, callback: WatchCallback) -> Callable[[], None]:
        watch = _Watch(path, path if path == ROOT else path + "/", callback)
        self._watches.append(watch)

        def cancel() -> None:
            if watch in self._watches:
                self._watches.remove(watch)

        return cancel

    def notify(self, changes: Sequence[Change]) -> None:
        """Report these changes, which `tree` already shows. A watch that fails does not keep the others from being
        called."""
        for watch in tuple(self._watches):
            seen = [change for change in changes if change.path == watch.path or change.path.startswith(watch.below)]
            if not seen:
                continue
            try:
                watch.callback(seen)
            except Exception as error:
                context = {"message": f"a watch of {watch.path} failed", "exception": error}
                asyncio.get_running_loop().call_exception_handler(context)
