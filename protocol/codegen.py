"""Shared by the decoder and encoder generators: building source code and compiling it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from struct import Struct
from typing import Any, Final

from barnabas.protocol.schema import Field, Message, StructType, WireType, wire_types

# How many elements one piece has, where messages are decoded or encoded in pieces. A long string or blob, which is
# copied, counts as one more for each KiB.
ELEMENTS_PER_PIECE: Final = 1000
COUNT_LENGTH: Final = "piece -= n >> 10"
# An array with more elements than this takes a while to free.
LONG_ARRAY: Final = 100
# Arrays of fewer numbers than this use a prebuilt struct. Replica lists are the common case.
_FEW: Final = 8


class Source:
    """Python source under construction, and the objects that it refers to."""

    def __init__(self, names: dict[str, Any]) -> None:
        self.lines: list[str] = []
        self.names = dict(names)
        self._indent = 0
        self._serial = 0

    def __call__(self, line: str) -> None:
        self.lines.append("    " * self._indent + line)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        self(head)
        self._indent += 1
        yield
        self._indent -= 1

    @contextmanager
    def function(self, head: str) -> Iterator[None]:
        """Another function beside the one that is being written."""
        lines, indent = self.lines, self._indent
        self.lines, self._indent = [], 0
        with self.block(head):
            yield
        self.lines, self._indent = [*self.lines, *lines], indent

    def local(self, stem: str) -> str:
        """A variable name that is unique in this function."""
        self._serial += 1
        return f"{stem}{self._serial}"

    def struct_method(self, method: str, codes: str) -> str:
        """The name of the `pack` or `unpack_from` method of a struct with these codes."""
        name = f"{method}_{codes.replace('?', 'bool')}"
        self.names.setdefault(name, getattr(Struct(">" + codes), method))
        return name

    def counted_method(self, method: str, code: str) -> str:
        """An expression for the `pack` or `unpack_from` method of a struct that repeats this code `n` times."""
        name = f"{method}_some_{code.replace('?', 'bool')}"
        self.names.setdefault(name, [getattr(Struct(f">{n}{code}"), method) for n in range(_FEW)])
        self.names["Struct"] = Struct
        return f"({name}[n] if n < {_FEW} else Struct(f'>{{n}}{code}').{method})"

    def compile(self, function: str, filename: str) -> Any:
        exec(compile("\n".join(self.lines), filename, "exec"), self.names)
        return self.names[function]


class Layout:
    """The layout of a struct in one version of a message: which fields are inline, tagged or absent."""

    def __init__(self, struct: StructType, version: int, flexible: bool) -> None:
        types = wire_types(struct)
        present = {n: f for n, f in struct.fields.items() if version in f.versions}
        self.struct = struct
        self.types = types
        self.absent = {n: f for n, f in struct.fields.items() if n not in present}
        self.tagged = sorted(((f.tag, n) for n, f in present.items() if f.tag is not None), key=lambda pair: pair[0])
        self.in_line = [n for n, f in present.items() if f.tag is None]
        self.flexible = flexible


def repeated_structs(message: StructType, version: int) -> set[StructType]:
    """The structs that a message has in several places.

    Each gets a function of its own, because the time to compile a codec grows with its length. All others are written
    in line, which is faster to run.
    """
    found: Counter[StructType] = Counter()
    _count_structs(message, version, found)
    return {struct for struct, count in found.items() if count > 1}


def _count_structs(struct: StructType, version: int, found: Counter[StructType]) -> None:
    for name, wire_type in wire_types(struct).items():
        inner = wire_type[0] if isinstance(wire_type, list) else wire_type
        if version in struct.fields[name].versions and isinstance(inner, StructType):
            found[inner] += 1
            _count_structs(inner, version, found)


def is_number(wire_type: Any) -> bool:
    """Whether struct has a one-letter code for it, so that an array of them is a single struct."""
    return isinstance(wire_type, WireType) and len(wire_type.code) == 1


def default_of(spec: Field, wire_type: Any) -> Any:
    """A field's default, or Kafka's zero value for its type if it declares none."""
    if not spec.required:
        return spec.default
    if isinstance(wire_type, WireType):
        return wire_type.zero
    return () if isinstance(wire_type, list) else None


def is_flexible(message: type[Message], version: int) -> bool:
    message.check_version(version)
    return version in message.flexible


def least_size(wire_type: Any, version: int, flexible: bool) -> int:
    """The smallest encoded size of a value. Counts from the wire are checked against it."""
    if isinstance(wire_type, WireType):
        return wire_type.size or (1 if flexible else 2 if wire_type.name == "string" else 4)
    if isinstance(wire_type, list):
        return 1 if flexible else 4
    layout = Layout(wire_type, version, flexible)
    sizes = (least_nullable(layout, name, version) for name in layout.in_line)
    return max(1, sum(sizes) + flexible)


def least_nullable(layout: Layout, name: str, version: int) -> int:
    wire_type = layout.types[name]
    if isinstance(wire_type, StructType) and version in layout.struct.fields[name].nullable:
        return 1
    return least_size(wire_type, version, layout.flexible)
