"""Encoders: one function of straight-line code per message and version, generated on first use.

A second form of each, for answers that may be long, works in pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import cache
from typing import Any, Final

from barnabas.protocol.codegen import (
    COUNT_LENGTH,
    ELEMENTS_PER_PIECE,
    LONG_ARRAY,
    Layout,
    Source,
    default_of,
    is_flexible,
    is_number,
    repeated_structs,
)
from barnabas.protocol.schema import RECORDS, STRING, Message, Splice, StructType, WireType
from barnabas.protocol.varint import uvarint

# Records that are not copied: their position in the output, and the records themselves.
Splices = list[tuple[int, Splice]]
Encoder = Callable[[Any, bytearray, Splices], None]
EncoderInPieces = Callable[[Any, bytearray, Splices, list[list[Any]]], Generator[None, None, None]]

_IN_MEMORY: Final = (bytes, bytearray, memoryview)

# Error messages quote names, which may be as long as the longest string. Messages that are too long to read are cut;
# otherwise they might not even fit into their field.
_ERROR_MESSAGE: Final = "error_message"
_LONGEST_ERROR_MESSAGE: Final = 1000


def encode(message: Message, version: int) -> bytes:
    """Encode a message whose records, if any, are in memory."""
    out = bytearray()
    splices: Splices = []
    encoder(type(message), version)(message, out, splices)
    if splices:
        raise TypeError(f"{type(message).__name__} holds records that are in a file")
    return bytes(out)


def encoder(message: type[Message], version: int) -> Encoder:
    """A function that appends `message` to a bytearray, and adds its splices to a list."""
    made: Encoder = _make_encoder(message, version, in_pieces=False)
    return made


def encoder_in_pieces(message: type[Message], version: int) -> EncoderInPieces:
    """The same as a generator that yields after each piece.

    It also takes a list, to which it adds the long arrays of the message: they take a while to free.
    """
    made: EncoderInPieces = _make_encoder(message, version, in_pieces=True)
    return made


@cache
def _make_encoder(message: type[Message], version: int, *, in_pieces: bool) -> Any:
    write = Source({"uvarint": uvarint, "put_records": _put_records, "readable": _readable})
    flexible = is_flexible(message, version)
    with write.block(f"def encode(o, out, splices{', long' if in_pieces else ''}):"):
        if in_pieces:
            write(f"piece = {ELEMENTS_PER_PIECE}")
        writer = _Writer(write, version, flexible, in_pieces, repeated_structs(message, version))
        writer.struct(message, "o", "out")
        writer.flush("out")
        write("return None")
        if in_pieces:
            write("yield")  # which makes it a generator, also where there are no arrays
    return write.compile("encode", f"<encoder of {message.__name__} v{version}>")


def _readable(message: str | None) -> str | None:
    if message is None or len(message) <= _LONGEST_ERROR_MESSAGE:
        return message
    return message[: _LONGEST_ERROR_MESSAGE - 3] + "..."


def _put_records(out: bytearray, splices: Splices, records: Any, compact: bool) -> None:
    in_memory = isinstance(records, _IN_MEMORY)
    size = len(records) if in_memory else records.size
    out += uvarint(size + 1) if compact else size.to_bytes(4, "big")
    if in_memory:
        out += records
    elif size:
        splices.append((len(out), records))


class _Writer:
    """Writes the body of one encoder: lines that append the value of an expression to `out`.

    Fixed-size values are collected as (struct code, expression), so that one call packs adjacent ones.
    """

    def __init__(self, write: Source, version: int, flexible: bool, in_pieces: bool, repeated: set[StructType]) -> None:
        self.write = write
        self.version = version
        self.flexible = flexible
        self.in_pieces = in_pieces
        self._waiting: list[tuple[str, str]] = []
        self._functions: dict[StructType, str | None] = dict.fromkeys(repeated)

    def struct(self, struct_type: StructType, source: str, out: str) -> None:
        if struct_type not in self._functions:
            self._in_line(struct_type, source, out)
            return
        self.flush(out)
        function = self._functions[struct_type] or self._function(struct_type)
        if self.in_pieces:
            self.write(f"piece = yield from {function}({source}, {out}, splices, long, piece)")
        else:
            self.write(f"{function}({source}, {out}, splices)")

    def _function(self, struct_type: StructType) -> str:
        """Write a function for a struct that the message has in several places, and return its name."""
        write = self.write
        self._functions[struct_type] = function = write.local("put")
        with write.function(f"def {function}(o, out, splices{', long, piece' if self.in_pieces else ''}):"):
            self._in_line(struct_type, "o", "out")
            self.flush("out")
            if self.in_pieces:
                write("return piece")
                write("yield")
        return function

    def _in_line(self, struct_type: StructType, source: str, out: str) -> None:
        layout = Layout(struct_type, self.version, self.flexible)
        for name in layout.in_line:
            spec = struct_type.fields[name]
            nullable = self.version in spec.nullable
            value = f"{source}.{name}"
            if name.endswith(_ERROR_MESSAGE):
                value = f"readable({value})"
            self.value(layout.types[name], value, nullable, out, spec.compactable)
        if self.flexible:
            self._tagged(layout, source, out)

    def flush(self, out: str) -> None:
        self._pack(self._take(), out)

    def _take(self) -> list[tuple[str, str]]:
        waiting, self._waiting = self._waiting, []
        return waiting

    def _pack(self, parts: list[tuple[str, str]], out: str) -> None:
        """`x` is the struct code for a zero byte, which takes no value."""
        codes = "".join(code for code, _ in parts)
        if codes in ("B", "x"):
            self.write(f"{out}.append({parts[0][1] or 0})")
        elif codes:
            pack = self.write.struct_method("pack", codes)
            self.write(f"{out} += {pack}({', '.join(value for _, value in parts if value)})")

    def value(
        self, wire_type: Any, source: str, nullable: bool, out: str, compactable: bool = True, *, tagged: bool = False
    ) -> None:
        compact = self.flexible and compactable
        if isinstance(wire_type, WireType) and wire_type.size:
            self._waiting.append((wire_type.code, source))
            return
        write = self.write
        value = write.local("v")
        write(f"{value} = {source}")
        if not nullable:
            self._present(wire_type, value, compact, out)
            return
        waiting = self._take()
        with write.block(f"if {value} is None:"):
            if isinstance(wire_type, StructType):
                null = ("b", "0" if tagged else "-1")
            elif compact:
                null = ("x", "")
            else:
                null = ("h" if wire_type is STRING else "i", "-1")
            self._pack([*waiting, null], out)
        with write.block("else:"):
            self._waiting = [*waiting, ("b", "1")] if isinstance(wire_type, StructType) else waiting
            self._present(wire_type, value, compact, out)
            self.flush(out)

    def _present(self, wire_type: Any, value: str, compact: bool, out: str) -> None:
        write = self.write
        if isinstance(wire_type, StructType):
            self.struct(wire_type, value, out)
        elif isinstance(wire_type, list):
            self._array(wire_type[0], value, out)
        elif wire_type is RECORDS:
            self.flush(out)
            write(f"put_records({out}, splices, {value}, {compact})")
        else:
            if wire_type is STRING:
                write(f"{value} = {value}.encode()")
            write(f"n = len({value})")
            self._length(compact, "h" if wire_type is STRING else "i", out)
            write(f"{out} += {value}")
            if self.in_pieces:
                write(COUNT_LENGTH)

    def _length(self, compact: bool, code: str, out: str) -> None:
        """Write `n`, together with the pending values before it."""
        write = self.write
        waiting = self._take()
        if not compact:
            self._pack([*waiting, (code, "n")], out)
            return
        with write.block("if n < 127:"):
            self._pack([*waiting, ("B", "n + 1")], out)
        with write.block("else:"):
            self._pack(waiting, out)
            write(f"{out} += uvarint(n + 1)")

    def _array(self, element: Any, value: str, out: str) -> None:
        write = self.write
        write(f"n = len({value})")
        self._length(self.flexible, "i", out)
        if is_number(element):
            write(f"{out} += {write.counted_method('pack', element.code)}(*{value})")
            return
        if self.in_pieces:
            with write.block(f"if n > {LONG_ARRAY}:"):
                write(f"long.append({value})")
        item = write.local("item")
        with write.block(f"for {item} in {value}:"):
            self.value(element, item, False, out)
            self.flush(out)
            if self.in_pieces:
                write("piece -= 1")
                with write.block("if piece < 1:"):
                    write(f"piece = {ELEMENTS_PER_PIECE}")
                    write("yield")

    def _tagged(self, layout: Layout, source: str, out: str) -> None:
        """A tagged field is written only when it differs from its default; a struct without one always is."""
        write = self.write
        if not layout.tagged:
            self._waiting.append(("x", ""))
            return
        present = {name: self._differs(layout, name, source) for _, name in layout.tagged}
        count = write.local("tags")
        write(f"{count} = {' + '.join(f'({test})' for test in present.values())}")
        self._waiting.append(("B", count))
        self.flush(out)
        with write.block(f"if {count}:"):
            for number, name in layout.tagged:
                with write.block(f"if {present[name]}:"):
                    body = write.local("body")
                    write(f"{body} = bytearray()")
                    nullable = self.version in layout.struct.fields[name].nullable
                    self.value(layout.types[name], f"{source}.{name}", nullable, body, tagged=True)
                    self.flush(body)
                    write(f"{out}.append({number})")
                    write(f"{out} += uvarint(len({body}))")
                    write(f"{out} += {body}")

    def _differs(self, layout: Layout, name: str, source: str) -> str:
        if layout.struct.fields[name].required and isinstance(layout.types[name], StructType):
            return "True"
        default = default_of(layout.struct.fields[name], layout.types[name])
        if default is None:
            return f"{source}.{name} is not None"
        if default == () and isinstance(default, tuple):
            return f"not not {source}.{name}"
        return f"{source}.{name} != {default!r}"
