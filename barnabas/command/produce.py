"""`barnabas produce`: a record for every line of a file or of standard input."""

from __future__ import annotations

import argparse
import os
import stat
import sys
from pathlib import Path
from typing import Final

from barnabas.client.errors import ClientError
from barnabas.client.producer import Producer
from barnabas.client.requests.data import ACKS_ALL
from barnabas.command.arguments import add_connection, client
from barnabas.command.ending import UsageError
from barnabas.command.escapes import unescape
from barnabas.command.line_reader import InputError, read_lines
from barnabas.command.line_records import JsonLines, TextLines
from barnabas.command.progress import Progress
from barnabas.command.values import at_least, timestamp
from barnabas.protocol.records.compression import CompressionType

_STANDARD_INPUT: Final = 0

_EPILOG: Final = r"""examples:
  barnabas produce orders --file lines.txt                 a value per line
  barnabas produce orders -K :                             key:value
  echo '{"key": "a", "value": {"id": 1}, "headers": {"source": "shop"}}' | barnabas produce orders --json
  barnabas consume orders -e --json | barnabas produce copy --json

With --json, an object has a value and perhaps key, headers, partition and timestamp. Text is written as it is, null as
null, {"base64": "..."} as bytes, and any other JSON as JSON."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EPILOG
    parser.add_argument("topic", metavar="TOPIC")
    parser.add_argument("--file", metavar="FILE", type=Path, help="read from this file instead of standard input")
    parser.add_argument("--json", action="store_true", help="each line is a JSON object: a whole record")
    parser.add_argument("-k", "--key", metavar="KEY", type=str.encode, help="the key of every record")
    parser.add_argument(
        "-K",
        "--key-separator",
        metavar="TEXT",
        type=_separator,
        help=r"what separates the key from the value in a line, such as : or \t",
    )
    parser.add_argument(
        "-H",
        "--header",
        metavar="NAME=VALUE",
        type=_header,
        action="append",
        default=[],
        help="a header of every record; may be repeated",
    )
    parser.add_argument(
        "--timestamp",
        metavar="TIME",
        type=timestamp,
        help="of every record: milliseconds since 1970, or 2026-01-31T12:00:00 (default: now)",
    )
    parser.add_argument("--null", metavar="TEXT", type=str.encode, help="a value of this text means null: a tombstone")
    parser.add_argument(
        "-p", "--partition", metavar="N", type=at_least(0), help="the partition (default: by key, or in turn)"
    )
    parser.add_argument(
        "-z",
        "--compression",
        choices=[kind.name.lower() for kind in CompressionType],
        default="none",
        help="(default: none)",
    )
    parser.add_argument(
        "--acks",
        choices=["0", "1", "all"],
        default="all",
        help="how many replicas must have a record before it counts as written (default: all)",
    )
    parser.add_argument(
        "--batch-bytes",
        metavar="N",
        type=at_least(1),
        default=900_000,
        help="the largest batch (default: %(default)s)",
    )
    add_connection(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    _refuse_contradictions(options)
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
            _produce(producer, source, _input_format(options, producer.partition_count))
        except (InputError, ClientError) as error:
            raise ClientError(f"{error}; {_written(producer.acknowledged)} before that") from None
    return 0


def _refuse_contradictions(options: argparse.Namespace) -> None:
    if options.json and (options.key_separator is not None or options.null is not None):
        raise UsageError("produce: with --json, -K and --null do not apply: each line has its own key and null")
    if options.key is not None and options.key_separator is not None:
        raise UsageError("produce: -k gives all records the same key and -K each its own; use one of them")


def _input_format(options: argparse.Namespace, partition_count: int) -> TextLines | JsonLines:
    if options.json:
        return JsonLines(partition_count, key=options.key, timestamp_ms=options.timestamp)
    return TextLines(
        separator=options.key_separator, key=options.key, null=options.null, timestamp_ms=options.timestamp
    )


def _produce(producer: Producer, source: int, input_format: TextLines | JsonLines) -> None:
    lines_read = size = 0
    # No progress for somebody who types the lines.
    with Progress(None if os.isatty(source) else sys.stderr, _size(source)) as progress:
        try:
            for lines, paused in read_lines(source):
                size += sum(map(len, lines)) + len(lines)
                records, error = input_format.parse(lines, lines_read)
                if len(records):
                    producer.send(records)
                if error is not None:
                    raise error
                lines_read += len(lines)
                if paused:
                    producer.flush()
                progress.show(producer.acknowledged, size)
        except InputError:
            producer.flush()
            raise
        producer.flush()
        progress.summary(producer.acknowledged, size)


def _written(count: int) -> str:
    return "1 record was written" if count == 1 else f"{count:,} records were written"


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
