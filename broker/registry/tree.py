"""The tree in memory, and changes to it that are decided but not yet made."""

import re
from collections.abc import Iterable

from barnabas.broker.registry.errors import BadVersion, NoChildrenForEphemerals, NodeExists, NoNode, NotEmpty
from barnabas.broker.registry.registry import Change, Node
from barnabas.broker.registry.tree_operations import ANY_VERSION, Create, Delete, Operation, Set

ROOT = "/"

# ZooKeeper's rule for paths: absolute, no empty step, no "." or "..", no NUL.
_PATH = re.compile(r"(?:/(?!\.{1,2}(?:/|\Z))[^/\0]+)+")


def is_path(path: object) -> bool:
    return isinstance(path, str) and _PATH.fullmatch(path) is not None


def check_path(path: str) -> None:
    if not is_path(path):
        raise ValueError(f"not a path of the registry: {path!r}")


def parent_of(path: str) -> str:
    """The path above: "/a" for "/a/b", "/" for "/a"."""
    return path[: path.rindex("/")] or ROOT


class Tree:
    """Every node by path, and the names below it."""

    def __init__(self) -> None:
        self._nodes: dict[str, Node] = {ROOT: Node(b"")}
        self._children: dict[str, set[str]] = {}  # only of nodes that have some
        self._sequences: dict[str, int] = {}  # the next number of sequential nodes, by their parent

    def find(self, path: str) -> Node | None:
        return self._nodes.get(path)

    def get(self, path: str) -> Node:
        node = self._nodes.get(path)
        if node is None:
            raise NoNode(path)
        return node

    def children(self, path: str) -> list[str]:
        if path not in self._nodes:
            raise NoNode(path)
        return sorted(self._children.get(path, ()))

    def nodes(self) -> Iterable[tuple[str, Node]]:
        """All nodes except the root, with their paths."""
        return ((path, node) for path, node in self._nodes.items() if path != ROOT)

    def child_count(self, path: str) -> int:
        return len(self._children.get(path, ()))

    def next_sequence(self, path: str) -> int:
        """A number for a sequential node below `path`. No number is issued twice, though some may never be used."""
        number = self._sequences.get(path)
        if number is None:
            taken = [int(name[-10:]) for name in self._children.get(path, ()) if name[-10:].isdigit()]
            number = max(taken, default=-1) + 1
        self._sequences[path] = number + 1
        return number

    def put(self, path: str, node: Node) -> None:
        """Add or replace a node; the caller has checked that its parent exists."""
        if path not in self._nodes:
            above, _, name = path.rpartition("/")
            siblings = self._children.get(above or ROOT)
            if siblings is None:
                self._children[above or ROOT] = {name}
            else:
                siblings.add(name)
        self._nodes[path] = node

    def remove(self, path: str) -> None:
        """Remove a node that has no children."""
        del self._nodes[path]
        above, _, name = path.rpartition("/")
        siblings = self._children[above or ROOT]
        siblings.remove(name)
        if not siblings:
            del self._children[above or ROOT]

    def apply(self, changes: Iterable[Change]) -> None:
        for path, node in changes:
            if node is None:
                self.remove(path)
            else:
                self.put(path, node)


class Staging:
    """A tree with some changes on top, while the tree itself stays as it is.

    Stagings can be stacked: a transaction is tried on its own staging, which is either absorbed by the one below or
    dropped if an operation does not fit.
    """

    def __init__(self, below: "Tree | Staging", zxid: int = 0) -> None:
        """`zxid` is the number of the transaction whose changes are staged here."""
        self.changes: list[Change] = []
        self._below = below
        self._zxid = zxid
        self._nodes: dict[str, Node | None] = {}
        self._child_counts: dict[str, int] = {}

    def find(self, path: str) -> Node | None:
        return self._nodes[path] if path in self._nodes else self._below.find(path)

    def next_sequence(self, path: str) -> int:
        return self._below.next_sequence(path)

    def child_count(self, path: str) -> int:
        count = self._child_counts.get(path)
        return self._below.child_count(path) if count is None else count

    def absorb(self, above: "Staging") -> None:
        self.changes += above.changes
        self._nodes |= above._nodes
        self._child_counts |= above._child_counts

    def stage(self, operation: Operation) -> None:
        """Record what `operation` changes; raises the Conflict that prevents it."""
        if isinstance(operation, Create):
            self._create(operation)
            return
        node = self.find(operation.path)
        if node is None:
            raise NoNode(operation.path)
        if operation.version not in (ANY_VERSION, node.version):
            raise BadVersion(operation.path)
        if isinstance(operation, Set):
            self._note(operation.path, node._replace(data=operation.data, version=node.version + 1))
        elif isinstance(operation, Delete):
            self._delete(operation.path)

    def _create(self, operation: Create) -> None:
        path = operation.path
        if operation.sequential:
            path += f"{self.next_sequence(parent_of(path)):010d}"
        check_path(path)
        if self.find(path) is not None:
            raise NodeExists(path)
        above = parent_of(path)
        parent = self.find(above)
        if parent is None:
            raise NoNode(above)
        if parent.ephemeral:
            raise NoChildrenForEphemerals(path)
        self._child_counts[above] = self.child_count(above) + 1
        self._note(path, Node(operation.data, 0, operation.ephemeral, self._zxid))

    def _delete(self, path: str) -> None:
        if path == ROOT:
            raise ValueError("the root cannot be deleted")
        if self.child_count(path):
            raise NotEmpty(path)
        above = parent_of(path)
        self._child_counts[above] = self.child_count(above) - 1
        self._note(path, None)

    def _note(self, path: str, node: Node | None) -> None:
        self._nodes[path] = node
        self.changes.append(Change(path, node))
