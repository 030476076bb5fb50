"""Counts the error codes in an answer: one function of straight-line code per message, generated on first use.

A second form, for answers that may be long, works in pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import cache
from typing import Any, Final

from barnabas.protocol.codegen import ELEMENTS_PER_PIECE, Source
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.schema import Message, StructType, wire_types

ERROR_FIELDS: Final = ("error_code", "partition_error_code", "acknowledge_error_code")

# By code. An answer that says NONE is not counted.
ErrorCounts = dict[int, int]
Counter = Callable[[Any, ErrorCounts], None]
CounterInPieces = Callable[[Any, ErrorCounts], Generator[None, None, None]]


def error_counts(answer: Message) -> ErrorCounts:
    """The error codes in an answer, in their order, and how often each is in it."""
    found: ErrorCounts = {}
    error_counter(type(answer))(answer, found)
    return found


def error_counter(message: type[Message]) -> Counter:
    """A function that adds the errors in `message` to counts."""
    made: Counter = _make_counter(message, in_pieces=False)
    return made


def error_counter_in_pieces(message: type[Message]) -> CounterInPieces:
    """The same as a generator that yields after every ELEMENTS_PER_PIECE."""
    made: CounterInPieces = _make_counter(message, in_pieces=True)
    return made


def error_name(code: int) -> str:
    try:
        return ErrorCode(code).name
    except ValueError:
        return str(code)


@cache
def _make_counter(message: type[Message], *, in_pieces: bool) -> Any:
    write = Source({})
    with write.block("def count(o, found):"):
        if in_pieces:
            write(f"piece = {ELEMENTS_PER_PIECE}")
        _count(write, message, "o", in_pieces)
        write("return None")
        if in_pieces:
            write("yield")  # which makes it a generator, also where there are no arrays
    return write.compile("count", f"<error counter of {message.__name__}>")


def _count(write: Source, struct: StructType, name: str, in_pieces: bool) -> None:
    types = wire_types(struct)
    for field in ERROR_FIELDS:
        if field in types:
            write(f"code = {name}.{field}")
            with write.block("if code:"):
                write("found[code] = found.get(code, 0) + 1")
    for field, wire_type in types.items():
        inner = wire_type[0] if isinstance(wire_type, list) else wire_type
        if not isinstance(inner, StructType) or not _has_errors(inner):
            continue
        value = write.local("value")
        if inner is wire_type:
            write(f"{value} = {name}.{field}")
            with write.block(f"if {value} is not None:"):
                _count(write, inner, value, in_pieces)
            continue
        with write.block(f"for {value} in {name}.{field} or ():"):
            _count(write, inner, value, in_pieces)
            if in_pieces:
                write("piece -= 1")
                with write.block("if not piece:"):
                    write(f"piece = {ELEMENTS_PER_PIECE}")
                    write("yield")


def _has_errors(struct: StructType) -> bool:
    types = wire_types(struct)
    inner = (each[0] if isinstance(each, list) else each for each in types.values())
    return any(field in types for field in ERROR_FIELDS) or any(
        isinstance(each, StructType) and _has_errors(each) for each in inner
    )
