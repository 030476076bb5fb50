"""YAML as plain values, together with the line on which each of them stands."""

from __future__ import annotations

from typing import Any, Final

import yaml

Path = tuple[str, ...]
_MERGE: Final = "tag:yaml.org,2002:merge"


class Document:
    """`value` is made of dict, list and scalars; `line` finds where a part of it stands, counting from 1."""

    def __init__(self, text: str) -> None:
        self.mistakes: list[tuple[int, str]] = []
        self._lines: dict[Path, int] = {}
        self._texts: dict[Path, int] = {}
        self.value: Any = None
        try:
            node = yaml.compose(text, Loader=yaml.SafeLoader)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            line = mark.line + 1 if mark is not None else 1
            self.mistakes.append((line, f"this is no YAML: {error.problem or error}"))
            return
        except yaml.YAMLError as error:
            self.mistakes.append((1, f"this is no YAML: {error}"))
            return
        if node is not None:
            self.value = self._build(node, (), frozenset())

    def has(self, path: Path) -> bool:
        return path in self._lines

    def line(self, path: Path, line_in_text: int | None = None) -> int:
        """The line of the nearest part on the way to `path` that the file has; or one within that part's text."""
        while path and path not in self._lines:
            path = path[:-1]
        if line_in_text is not None:
            return self._texts.get(path, 1) + line_in_text
        return self._lines.get(path, 1)

    def override(self, path: Path, value: Any) -> None:
        """Put a value from the command line in its place; what it replaces keeps its line."""
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
        self._lines.setdefault(path, node.start_mark.line + 1)
        # The text of a block (`|` or `>`) begins on the line below the sign.
        block = isinstance(node, yaml.ScalarNode) and node.style in ("|", ">")
        self._texts.setdefault(path, node.start_mark.line + (2 if block else 1))
        if id(node) in above:
            self.mistakes.append((node.start_mark.line + 1, "an alias refers to what it stands in"))
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
