"""What the generators of decoders and encoders share: a page of source being written, and how it is compiled."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from struct import Struct
from typing import Any, Final

from protocol.schema import Field, Message, StructType, WireType, wire_types

# Arrays of fewer numbers than this get a struct made beforehand. Lists of replicas are the common case.
_FEW: Final = 8


class Source:
    """Lines of Python under way, and the objects that they name."""

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

    def local(self, stem: str) -> str:
        """A variable name that nothing else in this function has."""
        self._serial += 1
        return f"{stem}{self._serial}"

    def struct_method(self, method: str, codes: str) -> str:
        """The name of `pack` or `unpack_from` of a struct with these codes."""
        name = f"{method}_{codes.replace('?', 'bool')}"
        self.names.setdefault(name, getattr(Struct(">" + codes), method))
        return name

    def counted_method(self, method: str, code: str) -> str:
        """An expression for `pack` or `unpack_from` of a struct with this code `n` times."""
        name = f"{method}_some_{code.replace('?', 'bool')}"
        self.names.setdefault(name, [getattr(Struct(f">{n}{code}"), method) for n in range(_FEW)])
        self.names["Struct"] = Struct
        return f"({name}[n] if n < {_FEW} else Struct(f'>{{n}}{code}').{method})"

    def compile(self, function: str, filename: str) -> Any:
        exec(compile("\n".join(self.lines), filename, "exec"), self.names)
        return self.names[function]


class Layout:
    """A struct as one version of one message has it: which fields are in line, which are tagged, which are absent."""

    def __init__(self, struct: StructType, version: int, flexible: bool) -> None:
        types = wire_types(struct)
        present = {n: f for n, f in struct.fields.items() if version in f.versions}
        self.struct = struct
        self.types = types
        self.absent = {n: f for n, f in struct.fields.items() if n not in present}
        self.tagged = sorted(((f.tag, n) for n, f in present.items() if f.tag is not None), key=lambda pair: pair[0])
        self.in_line = [n for n, f in present.items() if f.tag is None]
        self.flexible = flexible


def is_number(wire_type: Any) -> bool:
    """Whether one letter stands for it in a struct, so that an array of them is one struct too."""
    return isinstance(wire_type, WireType) and len(wire_type.code) == 1


def default_of(spec: Field, wire_type: Any) -> Any:
    """A field's default; Kafka's zero value of its type where it declares none."""
    if not spec.required:
        return spec.default
    if isinstance(wire_type, WireType):
        return wire_type.zero
    return () if isinstance(wire_type, list) else None


def is_flexible(message: type[Message], version: int) -> bool:
    message.check_version(version)
    return version in message.flexible


def least_size(wire_type: Any, version: int, flexible: bool) -> int:
    """The fewest bytes that a value can take: what a count from the wire is checked against."""
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
