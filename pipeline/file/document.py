"""YAML as plain values, together with the line of each."""

from __future__ import annotations

from typing import Any, Final

import yaml

Path = tuple[str, ...]
_MERGE: Final = "tag:yaml.org,2002:merge"

# Aliases of aliases make a few lines stand for more than fits into memory, and deep nesting exhausts the stack. A
# pipeline has some hundred parts, a few levels deep.
_MOST_PARTS: Final = 100_000
_DEEPEST: Final = 100


class _TooLarge(Exception):
    def __init__(self, node: yaml.Node, reason: str) -> None:
        super().__init__(reason)
        self.line = node.start_mark.line + 1


class Document:
    """`value` consists of dicts, lists and scalars; `line` finds the line of a part of it, counting from 1."""

    def __init__(self, text: str) -> None:
        self.mistakes: list[tuple[int, str]] = []
        self._lines: dict[Path, int] = {}
        self._texts: dict[Path, int] = {}
        self._parts = 0
        self.value: Any = None
        try:
            node = yaml.compose(text, Loader=yaml.SafeLoader)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            line = mark.line + 1 if mark is not None else 1
            self.mistakes.append((line, f"this is not YAML: {error.problem or error}"))
            return
        except yaml.YAMLError as error:
            self.mistakes.append((1, f"this is not YAML: {error}"))
            return
        except RecursionError:
            self.mistakes.append((1, f"this is nested more than {_DEEPEST} levels deep"))
            return
        if node is not None:
            try:
                self.value = self._build(node, (), frozenset())
            except _TooLarge as error:
                self.mistakes.append((error.line, str(error)))

    def has(self, path: Path) -> bool:
        return path in self._lines

    def line(self, path: Path, line_in_text: int | None = None) -> int:
        """The line of the nearest existing part on the way to `path`, or a line within that part's text."""
        while path and path not in self._lines:
            path = path[:-1]
        if line_in_text is not None:
            return self._texts.get(path, 1) + line_in_text
        return self._lines.get(path, 1)

    def override(self, path: Path, value: Any) -> None:
        """Insert a value from the command line; it takes the line of what it replaces."""
        if not isinstance(self.value, dict):
            self.value = {}
        room = self.value
        for key in path[:-1]:
            below = room.get(key)
            if not isinstance(below, dict):
                below = room[key] = {}
            room = below
        room[path[-1]] = value

    def _build(self, node: yaml.Node, path: Path, above: frozenset[int]) -> Any:
        self._parts += 1
        if self._parts > _MOST_PARTS:
            raise _TooLarge(node, f"with its aliases, this has more than {_MOST_PARTS} parts")
        if len(path) > _DEEPEST:
            raise _TooLarge(node, f"this is nested more than {_DEEPEST} levels deep")
        self._lines.setdefault(path, node.start_mark.line + 1)
        # The text of a block (`|` or `>`) begins on the line below the sign.
        block = isinstance(node, yaml.ScalarNode) and node.style in ("|", ">")
        self._texts.setdefault(path, node.start_mark.line + (2 if block else 1))
        if id(node) in above:
            self.mistakes.append((node.start_mark.line + 1, "an alias refers to its own parent"))
            return None
        above = above | {id(node)}
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path, above)
        if isinstance(node, yaml.SequenceNode):
            return [self._build(each, (*path, str(i)), above) for i, each in enumerate(node.value)]
        loader = yaml.SafeLoader("")
        try:
            return loader.construct_object(node)
        except (yaml.YAMLError, ValueError) as error:
            self.mistakes.append((node.start_mark.line + 1, f"this value cannot be read: {error}"))
            return None

    def _mapping(self, node: yaml.MappingNode, path: Path, above: frozenset[int]) -> dict[str, Any]:
        values: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if key_node.tag == _MERGE:
                parts = value_node.value if isinstance(value_node, yaml.SequenceNode) else [value_node]
                for part in parts:
                    built = self._build(part, (*path, "<<"), above)
                    if isinstance(built, dict):
                        merged = {**built, **merged}
                continue
            if not isinstance(key_node, yaml.ScalarNode):
                self.mistakes.append((line, "a key has to be a plain word"))
                continue
            key = str(key_node.value)
            if key in values:
                first = self._lines[(*path, key)]
                self.mistakes.append((line, f"the key {key!r} is there twice; the first is on line {first}"))
                continue
            self._lines[(*path, key)] = line
            values[key] = self._build(value_node, (*path, key), above)
            self._lines[(*path, key)] = line
        return {**merged, **values}
