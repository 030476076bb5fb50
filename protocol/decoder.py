"""Decoders: for each message and version, one function of straight-line code over a buffer, written on first use.

Every length and count is checked against what is left before anything is made of it, so the memory that a decode takes
is bounded by the size of its input. Whatever is wrong with the bytes raises ProtocolError.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

from protocol.codegen import Layout, Source, default_of, is_fixed, is_flexible, least_size
from protocol.errors import ProtocolError
from protocol.schema import BYTES, RECORDS, STRING, Message, StructType, WireType
from protocol.varint import Buffer, read_uvarint

M = TypeVar("M", bound=Message)
Decoder = Callable[[Buffer, int], tuple[M, int]]


def decode(message: type[M], version: int, buf: Buffer) -> M:
    """Decode a buffer that holds this message and nothing more."""
    value, pos = decoder(message, version)(buf, 0)
    if pos != len(buf):
        raise ProtocolError(f"{message.__name__} v{version}: {len(buf) - pos} bytes too many")
    return value


def decoder(message: type[M], version: int) -> Decoder[M]:
    """The function that decodes `message` at a position and returns it with the position after it.

    Strings are copied out; records are views into the buffer if it is a memoryview.
    """
    made: Decoder[M] = _make_decoder(message, version)
    return made


@cache
def _make_decoder(message: type[Message], version: int) -> Decoder[Any]:
    write = Source(
        {
            "new": object.__new__,
            "unpack_from": struct.unpack_from,
            "read_uvarint": read_uvarint,
            "skip_tagged_fields": skip_tagged_fields,
            "ProtocolError": ProtocolError,
            "FAULTS": (struct.error, IndexError, UnicodeDecodeError),
            "bad": _bad,
        }
    )
    flexible = is_flexible(message, version)
    title = f"{message.__name__} v{version}"
    with write.block("def decode(buf, pos):"):
        write("size = len(buf)")
        with write.block("try:"):
            target = _Writer(write, version, flexible).struct(message)
            write(f"return {target}, pos")
        with write.block("except FAULTS as fault:"):
            write(f"raise bad({title!r}, pos, fault) from None")
    return write.compile("decode", f"<decoder of {title}>")  # type: ignore[no-any-return]


def skip_tagged_fields(buf: Buffer, pos: int, count: int) -> int:
    """Pass over tagged fields that this version does not know. Their tags must rise, as Kafka demands."""
    last_tag = -1
    for _ in range(count):
        tag, pos = read_uvarint(buf, pos)
        length, pos = read_uvarint(buf, pos)
        if tag <= last_tag:
            raise ProtocolError(f"tag {tag} after tag {last_tag} at byte {pos}")
        if length > len(buf) - pos:
            raise ProtocolError(f"tag {tag} claims {length} bytes at byte {pos}, where {len(buf) - pos} are left")
        last_tag = tag
        pos += length
    return pos


def _bad(title: str, pos: int, fault: Exception) -> ProtocolError:
    if isinstance(fault, UnicodeDecodeError):
        return ProtocolError(f"{title}: a string is not UTF-8 at byte {pos}")
    return ProtocolError(f"{title}: cut short at byte {pos}")


class _Writer:
    """Writes the body of one decoder. Each method leaves `pos` after what it read, and returns an expression."""

    def __init__(self, write: Source, version: int, flexible: bool) -> None:
        self.write = write
        self.version = version
        self.flexible = flexible

    def struct(self, struct_type: StructType) -> str:
        write = self.write
        layout = Layout(struct_type, self.version, self.flexible)
        target = write.local("o")
        write.names[struct_type.__name__] = struct_type
        write(f"{target} = new({struct_type.__name__})")
        for name, spec in layout.absent.items():
            self._set_default(target, name, default_of(spec, layout.types[name]))
        for run in layout.runs():
            if is_fixed(layout.types[run[0]]):
                self._fixed(target, run, [layout.types[name] for name in run])
            else:
                spec = struct_type.fields[run[0]]
                value = self.value(layout.types[run[0]], self.version in spec.nullable, spec.compactable)
                write(f"{target}.{run[0]} = {value}")
        if self.flexible:
            self._tagged(target, layout)
        return target

    def _set_default(self, target: str, name: str, default: Any) -> None:
        if default == () and isinstance(default, tuple):
            self.write(f"{target}.{name} = []")
        else:
            self.write(f"{target}.{name} = {default!r}")

    def _fixed(self, target: str, names: list[str], types: list[WireType]) -> None:
        unpack = self.write.struct_method("unpack_from", "".join(t.code for t in types))
        fields = ", ".join(f"{target}.{name}" for name in names)
        self.write(f"{fields}{',' if len(names) == 1 else ''} = {unpack}(buf, pos)")
        self.write(f"pos += {sum(t.size for t in types)}")

    def value(self, wire_type: Any, nullable: bool, compactable: bool = True) -> str:
        if isinstance(wire_type, list):
            return self._array(wire_type[0], nullable)
        if isinstance(wire_type, StructType):
            return self._nullable_struct(wire_type) if nullable else self.struct(wire_type)
        if wire_type.size:
            result = self.write.local("v")
            self.write(f"{result}, = {self.write.struct_method('unpack_from', wire_type.code)}(buf, pos)")
            self.write(f"pos += {wire_type.size}")
            return result
        return self._sized(wire_type, nullable, self.flexible and compactable)

    def _length(self, compact: bool, prefix: int, what: str, nullable: bool, null_line: str) -> None:
        """Write reading a length or count into `n`, and the branch for null; the caller opens the other branch."""
        write = self.write
        if compact:
            write("n = buf[pos]")
            write("pos += 1")
            with write.block("if n > 127:"):
                write("n, pos = read_uvarint(buf, pos - 1)")
            write("n -= 1")
        else:
            write(f"n, = {write.struct_method('unpack_from', 'h' if prefix == 2 else 'i')}(buf, pos)")
            write(f"pos += {prefix}")
        with write.block("if n < 0:"):
            with write.block("if n < -1:" if nullable else "if True:"):
                write(f"raise ProtocolError(f'{what} has length {{n}} at byte {{pos}}')")
            if nullable:
                write(null_line)

    def _sized(self, wire_type: WireType, nullable: bool, compact: bool) -> str:
        write = self.write
        result = write.local("v")
        prefix = 2 if wire_type is STRING else 4
        self._length(compact, prefix, f"a {wire_type.name} field", nullable, f"{result} = None")
        with write.block("else:"):
            write("end = pos + n")
            with write.block("if end > size:"):
                write("raise IndexError")
            convert = {STRING: "str(buf[pos:end], 'utf-8')", BYTES: "bytes(buf[pos:end])", RECORDS: "buf[pos:end]"}
            write(f"{result} = {convert[wire_type]}")
            write("pos = end")
        return result

    def _array(self, element: Any, nullable: bool) -> str:
        write = self.write
        result = write.local("a")
        self._length(self.flexible, 4, "an array", nullable, f"{result} = None")
        with write.block("else:"):
            with write.block(f"if n * {least_size(element, self.version, self.flexible)} > size - pos:"):
                write("raise IndexError")
            if is_fixed(element) and element.code in "bhiq":
                write(f"{result} = list(unpack_from(f'>{{n}}{element.code}', buf, pos))")
                write(f"pos += n * {element.size}")
            else:
                write(f"{result} = []")
                with write.block("for _ in range(n):"):
                    write(f"{result}.append({self.value(element, False)})")
        return result

    def _nullable_struct(self, struct_type: StructType) -> str:
        write = self.write
        result = write.local("v")
        write(f"present, = {write.struct_method('unpack_from', 'b')}(buf, pos)")
        write("pos += 1")
        with write.block("if present < 0:"):
            write(f"{result} = None")
        with write.block("else:"):
            write(f"{result} = {self.struct(struct_type)}")
        return result

    def _tagged(self, target: str, layout: Layout) -> None:
        write = self.write
        count = write.local("tags")
        for _, name in layout.tagged:
            self._set_default(target, name, default_of(layout.struct.fields[name], layout.types[name]))
        write(f"{count} = buf[pos]")
        write("pos += 1")
        with write.block(f"if {count}:"):
            with write.block(f"if {count} > 127:"):
                write(f"{count}, pos = read_uvarint(buf, pos - 1)")
            if not layout.tagged:
                write(f"pos = skip_tagged_fields(buf, pos, {count})")
                return
            tag, last_tag, stop = write.local("tag"), write.local("last_tag"), write.local("stop")
            write(f"{last_tag} = -1")
            with write.block(f"for _ in range({count}):"):
                write(f"{tag}, pos = read_uvarint(buf, pos)")
                write("n, pos = read_uvarint(buf, pos)")
                write(f"{stop} = pos + n")
                with write.block(f"if {stop} > size or {tag} <= {last_tag}:"):
                    write(f"raise ProtocolError(f'tag {{{tag}}} is out of order or over-long at byte {{pos}}')")
                write(f"{last_tag} = {tag}")
                for number, name in layout.tagged:
                    with write.block(f"{'if' if number == layout.tagged[0][0] else 'elif'} {tag} == {number}:"):
                        nullable = self.version in layout.struct.fields[name].nullable
                        write(f"{target}.{name} = {self.value(layout.types[name], nullable)}")
                with write.block("else:"):
                    write(f"pos = {stop}")
                with write.block(f"if pos != {stop}:"):
                    write(f"raise ProtocolError(f'tag {{{tag}}} does not fill its size at byte {{pos}}')")
