"""Encoders: for each message and version, one function of straight-line code, written on first use."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache
from typing import Any

from protocol.codegen import Layout, Source, default_of, is_fixed, is_flexible
from protocol.schema import RECORDS, STRING, Message, Splice, StructType, WireType
from protocol.varint import uvarint

# Where records that are not copied belong: a position in the output, and what goes there.
Splices = list[tuple[int, Splice]]
Encoder = Callable[[Any, bytearray, Splices], None]


def encode(message: Message, version: int) -> bytes:
    """Encode a message whose records, if it has any, are in memory."""
    out = bytearray()
    splices: Splices = []
    encoder(type(message), version)(message, out, splices)
    if splices:
        raise TypeError(f"{type(message).__name__} holds records that are in a file")
    return bytes(out)


@cache
def encoder(message: type[Message], version: int) -> Encoder:
    """The function that appends `message` to a bytearray, and notes in a list where its splices belong."""
    write = Source({"uvarint": uvarint, "put_records": _put_records, "pack": struct.pack})
    flexible = is_flexible(message, version)
    with write.block("def encode(o, out, splices):"):
        _Writer(write, version, flexible).struct(message, "o", "out")
        write("return None")
    return write.compile("encode", f"<encoder of {message.__name__} v{version}>")  # type: ignore[no-any-return]


def _put_records(out: bytearray, splices: Splices, records: Any, flexible: bool) -> None:
    in_memory = isinstance(records, bytes | bytearray | memoryview)
    size = len(records) if in_memory else records.size
    out += uvarint(size + 1) if flexible else size.to_bytes(4, "big")
    if in_memory:
        out += records
    elif size:
        splices.append((len(out), records))


class _Writer:
    """Writes the body of one encoder: lines that append the value of an expression to `out`."""

    def __init__(self, write: Source, version: int, flexible: bool) -> None:
        self.write = write
        self.version = version
        self.flexible = flexible

    def struct(self, struct_type: StructType, source: str, out: str) -> None:
        layout = Layout(struct_type, self.version, self.flexible)
        for run in layout.runs():
            if is_fixed(layout.types[run[0]]):
                self._fixed([f"{source}.{name}" for name in run], [layout.types[name] for name in run], out)
            else:
                spec = struct_type.fields[run[0]]
                nullable = self.version in spec.nullable
                self.value(layout.types[run[0]], f"{source}.{run[0]}", nullable, out, spec.compactable)
        if self.flexible:
            self._tagged(layout, source, out)

    def _fixed(self, values: list[str], types: list[WireType], out: str) -> None:
        pack = self.write.struct_method("pack", "".join(t.code for t in types))
        self.write(f"{out} += {pack}({', '.join(values)})")

    def value(self, wire_type: Any, source: str, nullable: bool, out: str, compactable: bool = True) -> None:
        compact = self.flexible and compactable
        if isinstance(wire_type, WireType) and wire_type.size:
            self._fixed([source], [wire_type], out)
            return
        write = self.write
        value = write.local("v")
        write(f"{value} = {source}")
        if not nullable:
            self._present(wire_type, value, compact, out)
            return
        with write.block(f"if {value} is None:"):
            if isinstance(wire_type, StructType):
                write(f"{out} += b'\\xff'")
            elif compact:
                write(f"{out} += b'\\0'")
            else:
                minus_one = b"\xff" * (2 if wire_type is STRING else 4)
                write(f"{out} += {minus_one!r}")
        with write.block("else:"):
            if isinstance(wire_type, StructType):
                write(f"{out} += b'\\1'")
            self._present(wire_type, value, compact, out)

    def _present(self, wire_type: Any, value: str, compact: bool, out: str) -> None:
        write = self.write
        if isinstance(wire_type, StructType):
            self.struct(wire_type, value, out)
        elif isinstance(wire_type, list):
            self._array(wire_type[0], value, out)
        elif wire_type is RECORDS:
            write(f"put_records({out}, splices, {value}, {compact})")
        else:
            if wire_type is STRING:
                write(f"{value} = {value}.encode()")
            self._length(f"len({value})", compact, 2 if wire_type is STRING else 4, out)
            write(f"{out} += {value}")

    def _length(self, length: str, compact: bool, prefix: int, out: str) -> None:
        write = self.write
        if compact:
            write(f"n = {length} + 1")
            with write.block("if n < 128:"):
                write(f"{out}.append(n)")
            with write.block("else:"):
                write(f"{out} += uvarint(n)")
        else:
            write(f"{out} += {write.struct_method('pack', 'h' if prefix == 2 else 'i')}({length})")

    def _array(self, element: Any, value: str, out: str) -> None:
        write = self.write
        self._length(f"len({value})", self.flexible, 4, out)
        if is_fixed(element):
            joined = f"b''.join({value})" if element.code == "16s" else f"pack(f'>{{n}}{element.code}', *{value})"
            write(f"n = len({value})")
            write(f"{out} += {joined}")
            return
        item = write.local("item")
        with write.block(f"for {item} in {value}:"):
            self.value(element, item, False, out)

    def _tagged(self, layout: Layout, source: str, out: str) -> None:
        """A tagged field is written only when it differs from its default."""
        write = self.write
        if not layout.tagged:
            write(f"{out}.append(0)")
            return
        present = {name: self._differs(layout, name, source) for _, name in layout.tagged}
        count = write.local("tags")
        write(f"{count} = {' + '.join(f'({test})' for test in present.values())}")
        write(f"{out}.append({count})")
        with write.block(f"if {count}:"):
            for number, name in layout.tagged:
                with write.block(f"if {present[name]}:"):
                    body = write.local("body")
                    write(f"{body} = bytearray()")
                    nullable = self.version in layout.struct.fields[name].nullable
                    self.value(layout.types[name], f"{source}.{name}", nullable, body)
                    write(f"{out}.append({number})")
                    write(f"{out} += uvarint(len({body}))")
                    write(f"{out} += {body}")

    def _differs(self, layout: Layout, name: str, source: str) -> str:
        default = default_of(layout.struct.fields[name], layout.types[name])
        if default is None:
            return f"{source}.{name} is not None"
        if default == () and isinstance(default, tuple):
            return f"not not {source}.{name}"
        return f"{source}.{name} != {default!r}"
