"""Decoders: for each message and version, one function of straight-line code over a buffer, written on first use.

Every length and count is checked against what is left before anything is made of it, so the memory that a decode takes
is bounded by the size of its input. Whatever is wrong with the bytes raises ProtocolError.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache
from typing import Any, Final, TypeVar

from protocol.codegen import Layout, Source, default_of, is_flexible, is_number, least_size
from protocol.errors import ProtocolError
from protocol.schema import BYTES, RECORDS, STRING, Message, StructType, WireType
from protocol.varint import Buffer, read_uvarint

M = TypeVar("M", bound=Message)
Decoder = Callable[[Buffer, int], tuple[M, int]]

# A compact length could say more, but a string is what a plain version can carry too.
LONGEST_STRING: Final = 32767


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
    """Pass over tagged fields that this version does not know. Their tags must rise."""
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
    """Writes the body of one decoder.

    Reads of a fixed size wait, so that those that stand together are made by one unpack; `_flush` writes it. Nothing
    may wait when the position moves in another way, when a branch begins or ends, or when a value is used.
    """

    def __init__(self, write: Source, version: int, flexible: bool) -> None:
        self.write = write
        self.version = version
        self.flexible = flexible
        self._waiting: list[tuple[str, str, int]] = []

    def struct(self, struct_type: StructType) -> str:
        """Write reading a struct, and return the variable that holds it."""
        write = self.write
        layout = Layout(struct_type, self.version, self.flexible)
        target = write.local("o")
        write.names[struct_type.__name__] = struct_type
        write(f"{target} = new({struct_type.__name__})")
        for name, spec in layout.absent.items():
            self._set_default(target, name, default_of(spec, layout.types[name]))
        for name in layout.in_line:
            spec = struct_type.fields[name]
            self.value(layout.types[name], f"{target}.{name}", self.version in spec.nullable, spec.compactable)
        if self.flexible:
            self._tagged(target, layout)
        self._flush()
        return target

    def _set_default(self, target: str, name: str, default: Any) -> None:
        if default == () and isinstance(default, tuple):
            self.write(f"{target}.{name} = []")
        else:
            self.write(f"{target}.{name} = {default!r}")

    def _read(self, into: str, code: str, size: int) -> None:
        self._waiting.append((into, code, size))

    def _flush(self) -> None:
        if not self._waiting:
            return
        targets = ", ".join(into for into, _, _ in self._waiting)
        codes = "".join(code for _, code, _ in self._waiting)
        if codes == "B":
            self.write(f"{targets} = buf[pos]")
        else:
            self.write(f"[{targets}] = {self.write.struct_method('unpack_from', codes)}(buf, pos)")
        self.write(f"pos += {sum(size for _, _, size in self._waiting)}")
        self._waiting = []

    def value(self, wire_type: Any, into: str, nullable: bool, compactable: bool = True) -> None:
        """Write reading a value and assigning it to `into`."""
        if isinstance(wire_type, list):
            self._array(wire_type[0], into, nullable)
        elif isinstance(wire_type, StructType):
            self._struct(wire_type, into, nullable)
        elif wire_type.size:
            self._read(into, wire_type.code, wire_type.size)
        else:
            self._sized(wire_type, into, nullable, self.flexible and compactable)

    def _length(self, compact: bool, wire_type: WireType | None, nullable: bool, into: str) -> None:
        """Write reading a length or count into `n`, and the branch for null; the caller opens the other branch."""
        write = self.write
        what = f"a {wire_type.name} field" if wire_type else "an array"
        wrong = f"raise ProtocolError(f'{what} has length {{n}} at byte {{pos}}')"
        if compact:
            self._read("n", "B", 1)
            self._flush()
            with write.block("if n > 127:"):
                write("second = buf[pos]")
                with write.block("if second < 128:"):  # the common case is worth more than a call
                    write("n += (second << 7) - 128")
                    write("pos += 1")
                with write.block("else:"):
                    write("n, pos = read_uvarint(buf, pos - 1)")
                if wire_type is STRING:
                    with write.block(f"if n > {LONGEST_STRING + 1}:"):
                        write(wrong)
            write("n -= 1")
        else:
            code, size = ("h", 2) if wire_type is STRING else ("i", 4)
            self._read("n", code, size)
            self._flush()
        with write.block("if n < 0:"):
            if not nullable:
                write(wrong)
                return
            if not compact:
                with write.block("if n < -1:"):
                    write(wrong)
            write(f"{into} = None")

    def _sized(self, wire_type: WireType, into: str, nullable: bool, compact: bool) -> None:
        write = self.write
        self._length(compact, wire_type, nullable, into)
        with write.block("else:"):
            write("end = pos + n")
            with write.block("if end > size:"):
                write("raise IndexError")
            convert = {STRING: "str(buf[pos:end], 'utf-8')", BYTES: "bytes(buf[pos:end])", RECORDS: "buf[pos:end]"}
            write(f"{into} = {convert[wire_type]}")
            write("pos = end")

    def _array(self, element: Any, into: str, nullable: bool) -> None:
        write = self.write
        self._length(self.flexible, None, nullable, into)
        with write.block("else:"):
            with write.block(f"if n * {least_size(element, self.version, self.flexible)} > size - pos:"):
                write("raise IndexError")
            if is_number(element):
                write(f"{into} = list({write.counted_method('unpack_from', element.code)}(buf, pos))")
                write(f"pos += n * {element.size}")
                return
            items = write.local("a")
            write(f"{into} = {items} = []")
            with write.block("for _ in range(n):"):
                write(f"{items}.append({self._element(element)})")

    def _element(self, wire_type: Any) -> str:
        if isinstance(wire_type, StructType):
            return self.struct(wire_type)
        item = self.write.local("v")
        self.value(wire_type, item, False)
        self._flush()
        return item

    def _struct(self, struct_type: StructType, into: str, nullable: bool) -> None:
        write = self.write
        if not nullable:
            write(f"{into} = {self.struct(struct_type)}")
            return
        self._read("present", "b", 1)
        self._flush()
        with write.block("if present < 0:"):
            write(f"{into} = None")
        with write.block("else:"):
            write(f"{into} = {self.struct(struct_type)}")

    def _tagged(self, target: str, layout: Layout) -> None:
        write = self.write
        for _, name in layout.tagged:
            self._set_default(target, name, default_of(layout.struct.fields[name], layout.types[name]))
        count = write.local("tags")
        self._read(count, "B", 1)
        self._flush()
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
                        self.value(layout.types[name], f"{target}.{name}", nullable)
                        self._flush()
                with write.block("else:"):
                    write(f"pos = {stop}")
                with write.block(f"if pos != {stop}:"):
                    write(f"raise ProtocolError(f'tag {{{tag}}} does not fill its size at byte {{pos}}')")
