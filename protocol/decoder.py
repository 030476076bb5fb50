"""Decoders: one function of straight-line code per message and version, generated on first use.

Every length and count is checked against the remaining bytes before anything is allocated, so the size of the input
bounds the memory that decoding takes. Malformed input raises ProtocolError.

An object may take a hundred times the memory of the one or two bytes that it was on the wire. A second form of each
decoder, for requests, works in pieces and accepts at most MOST_ELEMENTS and MOST_BYTES per message.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Generator
from functools import cache
from typing import Any, Final, TypeVar

from barnabas.protocol.codegen import (
    COUNT_LENGTH,
    ELEMENTS_PER_PIECE,
    LONG_ARRAY,
    Layout,
    Source,
    default_of,
    is_flexible,
    is_number,
    least_size,
    repeated_structs,
)
from barnabas.protocol.errors import ProtocolError
from barnabas.protocol.schema import BYTES, RECORDS, STRING, Message, StructType, WireType
from barnabas.protocol.varint import Buffer, read_uvarint

M = TypeVar("M", bound=Message)
Decoder = Callable[[Buffer, int], tuple[M, int]]

Pieces = Generator[None, None, tuple[M, int]]
NewList = Callable[[], list[Any]]
DecoderInPieces = Callable[[Buffer, int, NewList, int], Pieces[M]]

# The limits for all arrays of a message together, and for all its strings and bytes except records. No client names as
# many things in one request. A controller does: it tells brokers of all partitions and their replicas at once.
MOST_ELEMENTS: Final = 100_000
MOST_ELEMENTS_BETWEEN_BROKERS: Final = 100 * MOST_ELEMENTS
MOST_BYTES: Final = 16 * 1024 * 1024
# In one struct. Kafka has declared no struct with more than a few.
_MOST_TAGGED_FIELDS: Final = 1000
# A compact length could be larger, but Kafka limits strings to what the non-compact encoding can hold.
LONGEST_STRING: Final = 32767


def decode(message: type[M], version: int, buf: Buffer) -> M:
    """Decode a buffer that holds exactly this message."""
    value, pos = decoder(message, version)(buf, 0)
    if pos != len(buf):
        raise ProtocolError(f"{message.__name__} v{version}: {len(buf) - pos} bytes too many")
    return value


def decoder(message: type[M], version: int) -> Decoder[M]:
    """A function that decodes `message` at a position and returns it with the position after it.

    Strings are copied; records are views into the buffer if it is a memoryview.
    """
    made: Decoder[M] = _make_decoder(message, version, in_pieces=False)
    return made


def decoder_in_pieces(message: type[M], version: int) -> DecoderInPieces[M]:
    """The same as a generator that yields after each piece and returns what the decoder returns.

    It also takes the function that makes the lists for long arrays, and how many elements all arrays may have together.
    """
    made: DecoderInPieces[M] = _make_decoder(message, version, in_pieces=True)
    return made


@cache
def _make_decoder(message: type[Message], version: int, *, in_pieces: bool) -> Any:
    write = Source(
        {
            "new": object.__new__,
            "read_uvarint": read_uvarint,
            "long_string": _long_string,
            "tagged_fields": _tagged_fields,
            "skip_tagged_fields": skip_tagged_fields,
            "ProtocolError": ProtocolError,
            "FAULTS": (struct.error, IndexError, UnicodeDecodeError),
            "bad": _bad,
        }
    )
    flexible = is_flexible(message, version)
    title = f"{message.__name__} v{version}"
    with write.block(f"def decode(buf, pos{', new_list, most' if in_pieces else ''}):"):
        write("size = len(buf)")
        if in_pieces:
            write("left = most")
            write(f"room = {MOST_BYTES}")
            write(f"piece = {ELEMENTS_PER_PIECE}")
        with write.block("try:"):
            target = _Writer(write, version, flexible, in_pieces, repeated_structs(message, version)).struct(message)
            write(f"return {target}, pos")
        with write.block("except FAULTS as fault:"):
            write(f"raise bad({title!r}, pos, fault) from None")
            if in_pieces:
                write("yield")  # which makes it a generator, also where there are no arrays
    return write.compile("decode", f"<decoder of {title}>")


def skip_tagged_fields(buf: Buffer, pos: int, count: int) -> int:
    """Skip tagged fields that this version does not know. Their tags must be in ascending order."""
    if count > _MOST_TAGGED_FIELDS:
        raise ProtocolError(f"{count} tagged fields at byte {pos}")
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


def _long_string(buf: Buffer, pos: int) -> tuple[int, int]:
    """The compact length of a string that is longer than most, and the position after it."""
    n, pos = read_uvarint(buf, pos)
    if n > LONGEST_STRING + 1:
        raise ProtocolError(f"a string field has length {n - 1} at byte {pos}")
    return n, pos


def _tagged_fields(buf: Buffer, pos: int) -> tuple[int, int]:
    """The number of tagged fields of a struct that has more than most, and the position after it."""
    count, pos = read_uvarint(buf, pos)
    if count > _MOST_TAGGED_FIELDS:
        raise ProtocolError(f"{count} tagged fields at byte {pos}")
    return count, pos


def _bad(title: str, pos: int, fault: Exception) -> ProtocolError:
    if isinstance(fault, UnicodeDecodeError):
        return ProtocolError(f"{title}: a string is not UTF-8 at byte {pos}")
    return ProtocolError(f"{title}: cut short at byte {pos}")


class _Writer:
    """Writes the body of one decoder.

    Fixed-size reads are collected so that one unpack covers adjacent ones; `_flush` writes it. Nothing may be pending
    when the position moves in another way, when a branch begins or ends, or when a value is used.
    """

    def __init__(self, write: Source, version: int, flexible: bool, in_pieces: bool, repeated: set[StructType]) -> None:
        self.write = write
        self.version = version
        self.flexible = flexible
        self.in_pieces = in_pieces
        self._waiting: list[tuple[str, str, int]] = []
        self._functions: dict[StructType, str | None] = dict.fromkeys(repeated)

    def struct(self, struct_type: StructType) -> str:
        """Write the code that reads a struct, and return the variable that holds it."""
        if struct_type not in self._functions:
            return self._in_line(struct_type)
        self._flush()
        function = self._functions[struct_type] or self._function(struct_type)
        target = self.write.local("o")
        if self.in_pieces:
            state = "pos, left, room, piece"
            self.write(f"{target}, {state} = yield from {function}(buf, {state}, new_list)")
        else:
            self.write(f"{target}, pos = {function}(buf, pos)")
        return target

    def _function(self, struct_type: StructType) -> str:
        """Write a function for a struct that the message has in several places, and return its name."""
        write = self.write
        self._functions[struct_type] = function = write.local("read")
        arguments, result = "buf, pos", "pos"
        if self.in_pieces:
            arguments, result = "buf, pos, left, room, piece, new_list", "pos, left, room, piece"
        with write.function(f"def {function}({arguments}):"):
            write("size = len(buf)")
            write(f"return {self._in_line(struct_type)}, {result}")
            if self.in_pieces:
                write("yield")
        return function

    def _in_line(self, struct_type: StructType) -> str:
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

    def value(
        self, wire_type: Any, into: str, nullable: bool, compactable: bool = True, *, tagged: bool = False
    ) -> None:
        """Write the code that reads a value and assigns it to `into`."""
        if isinstance(wire_type, list):
            self._array(wire_type[0], into, nullable)
        elif isinstance(wire_type, StructType):
            self._struct(wire_type, into, nullable, tagged)
        elif wire_type.size:
            self._read(into, wire_type.code, wire_type.size)
        else:
            self._sized(wire_type, into, nullable, self.flexible and compactable)

    def _length(self, compact: bool, wire_type: WireType | None, nullable: bool, into: str) -> None:
        """Write the code that reads a length or count into `n`, and the null branch. The caller opens the other one."""
        write = self.write
        what = f"a {wire_type.name} field" if wire_type else "an array"
        wrong = f"raise ProtocolError(f'{what} has length {{n}} at byte {{pos}}')"
        if compact:
            self._read("n", "B", 1)
            self._flush()
            with write.block("if n > 127:"):
                if wire_type is RECORDS:
                    write("second = buf[pos]")
                    with write.block("if second < 128:"):  # inlined: two bytes are the common case
                        write("n += (second << 7) - 128")
                        write("pos += 1")
                    with write.block("else:"):
                        write("n, pos = read_uvarint(buf, pos - 1)")
                else:  # a call takes less to compile, and few names and arrays are so long
                    write(f"n, pos = {'long_string' if wire_type is STRING else 'read_uvarint'}(buf, pos - 1)")
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
            if self.in_pieces and wire_type is not RECORDS:
                write(COUNT_LENGTH)
                write("room -= n")
                with write.block("if room < 0:"):
                    write(f"raise ProtocolError('names and texts of more than {MOST_BYTES} bytes in one message')")

    def _array(self, element: Any, into: str, nullable: bool) -> None:
        write = self.write
        self._length(self.flexible, None, nullable, into)
        with write.block("else:"):
            with write.block(f"if n * {least_size(element, self.version, self.flexible)} > size - pos:"):
                write("raise IndexError")
            if self.in_pieces:
                write("left -= n")
                with write.block("if left < 0:"):
                    write("raise ProtocolError('too many elements in one message')")
            if is_number(element):
                write(f"{into} = list({write.counted_method('unpack_from', element.code)}(buf, pos))")
                write(f"pos += n * {element.size}")
                return
            items = write.local("a")
            write(f"{into} = {items} = {f'new_list() if n > {LONG_ARRAY} else []' if self.in_pieces else '[]'}")
            with write.block("for _ in range(n):"):
                write(f"{items}.append({self._element(element)})")
                if self.in_pieces:
                    write("piece -= 1")
                    with write.block("if piece < 1:"):
                        write(f"piece = {ELEMENTS_PER_PIECE}")
                        write("yield")

    def _element(self, wire_type: Any) -> str:
        if isinstance(wire_type, StructType):
            return self.struct(wire_type)
        item = self.write.local("v")
        self.value(wire_type, item, False)
        self._flush()
        return item

    def _struct(self, struct_type: StructType, into: str, nullable: bool, tagged: bool) -> None:
        """A struct that may be null is preceded by a byte: 1, or if it is null -1, and 0 in a tagged field."""
        write = self.write
        if not nullable:
            write(f"{into} = {self.struct(struct_type)}")
            return
        self._read("present", "b", 1)
        self._flush()
        with write.block(f"if present < {1 if tagged else 0}:"):
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
                write(f"{count}, pos = tagged_fields(buf, pos - 1)")
            if self.in_pieces:
                write(f"piece -= {count}")
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
                        self.value(layout.types[name], f"{target}.{name}", nullable, tagged=True)
                        self._flush()
                with write.block("else:"):
                    write(f"pos = {stop}")
                with write.block(f"if pos != {stop}:"):
                    write(f"raise ProtocolError(f'tag {{{tag}}} does not fill its size at byte {{pos}}')")
