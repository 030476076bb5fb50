"""`barnabas produce`: a record for every line of a file or of standard input."""

from __future__ import annotations

import argparse
import os
import select
import stat
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from broker.cli.arguments import add_connection, at_least, client
from broker.cli.client.errors import ClientError
from broker.cli.client.producer import ACKS_ALL, Producer
from broker.cli.ending import ends_quietly
from broker.cli.escapes import unescape
from broker.cli.progress import Progress
from protocol.records.compression import CompressionType

# What is read at once, and so goes out in one batch if it has no keys.
_CHUNK: Final = 1 << 18
# More than any broker takes by default, and little enough to hold.
_LONGEST_LINE: Final = 1 << 27
_STANDARD_INPUT: Final = 0

Fields = Sequence[bytes | None]


class InputError(ClientError):
    """A line that cannot become a record."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("topic", metavar="TOPIC")
    parser.add_argument("--file", metavar="FILE", type=Path, help="read lines from here instead of standard input")
    parser.add_argument(
        "--key-separator",
        metavar="TEXT",
        type=_separator,
        help=r"what stands between a line's key and value, such as : or \t",
    )
    parser.add_argument(
        "-H",
        "--header",
        metavar="NAME=VALUE",
        type=_header,
        action="append",
        default=[],
        help="a header of every record",
    )
    parser.add_argument("--null", metavar="TEXT", type=str.encode, help="a value of this text is null: a tombstone")
    parser.add_argument("--partition", metavar="N", type=at_least(0), help="instead of by key, or in turn")
    parser.add_argument("--compression", choices=[kind.name.lower() for kind in CompressionType], default="none")
    parser.add_argument(
        "--acks",
        choices=["0", "1", "all"],
        default="all",
        help="who must have a record before it counts (default: all)",
    )
    parser.add_argument(
        "--batch-bytes",
        metavar="N",
        type=at_least(1),
        default=900_000,
        help="the largest batch (default: %(default)s)",
    )
    add_connection(parser)


@ends_quietly
def run(options: argparse.Namespace) -> int:
    source = os.open(options.file, os.O_RDONLY) if options.file else _STANDARD_INPUT
    with client(options) as connected:
        producer = Producer(
            connected,
            options.topic,
            acks=ACKS_ALL if options.acks == "all" else int(options.acks),
            compression=CompressionType[options.compression.upper()],
            headers=options.header,
            partition=options.partition,
            batch_bytes=options.batch_bytes,
        )
        try:
            _produce(producer, source, options)
        except InputError:
            producer.flush()
            raise
        except ClientError as error:
            raise ClientError(f"{error}; {producer.acknowledged:,} records were acknowledged before") from None
    return 0


def _produce(producer: Producer, source: int, options: argparse.Namespace) -> None:
    lines_read = size = 0
    # Nobody who types lines wants to be told how many.
    with Progress(None if os.isatty(source) else sys.stderr, _size(source)) as progress:
        for lines, paused in read_lines(source):
            size += sum(map(len, lines)) + len(lines)
            keys: Fields | None = None
            values: Fields = lines
            if options.key_separator is not None:
                keys, values = split_keys(lines, options.key_separator, lines_read)
            if options.null is not None:
                values = [None if value == options.null else value for value in values]
            producer.send(keys, values)
            lines_read += len(lines)
            if paused:
                producer.flush()
            progress.show(producer.acknowledged, size)
        producer.flush()
        progress.summary(producer.acknowledged, size)


def read_lines(source: int, chunk: int = _CHUNK) -> Iterator[tuple[list[bytes], bool]]:
    """Lines as they arrive, many at a time, and whether there was nothing more to read just now."""
    rest: list[bytes] = []
    rest_size = 0
    ended = False
    while not ended:
        data, paused, ended = _read_available(source, chunk)
        *lines, tail = data.split(b"\n")
        if lines:
            lines[0] = b"".join((*rest, lines[0]))
            rest, rest_size = [], 0
        rest.append(tail)
        rest_size += len(tail)
        if rest_size > _LONGEST_LINE:
            raise InputError(f"a line of more than {_LONGEST_LINE:,} bytes is no record")
        if ended and rest_size:
            lines.append(b"".join(rest))
        if lines:
            yield lines, paused


def _read_available(source: int, size: int) -> tuple[bytes, bool, bool]:
    """Up to `size` bytes: all that is there, at least one, unless the input has ended. A pipe gives little at once."""
    parts: list[bytes] = []
    while size > 0:
        if parts and not select.select([source], [], [], 0)[0]:
            return b"".join(parts), True, False
        data = os.read(source, size)
        if not data:
            return b"".join(parts), False, True
        parts.append(data)
        size -= len(data)
    return b"".join(parts), False, False


def split_keys(lines: list[bytes], separator: bytes, before: int) -> tuple[Fields, Fields]:
    """Each line's key and value; `before` lines have been read already."""
    keys, values = [], []
    for number, line in enumerate(lines, before + 1):
        key, found, value = line.partition(separator)
        if not found:
            raise InputError(f"line {number} has no {separator.decode(errors='replace')!r} between a key and a value")
        keys.append(key)
        values.append(value)
    return keys, values


def _size(source: int) -> int | None:
    status = os.fstat(source)
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def _separator(text: str) -> bytes:
    if not text:
        raise argparse.ArgumentTypeError("a separator cannot be empty")
    return unescape(text).encode()


def _header(text: str) -> tuple[str, bytes | None]:
    """NAME alone is a header whose value is null."""
    name, equals, value = text.partition("=")
    if not name:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form NAME=VALUE")
    return name, value.encode() if equals else None
