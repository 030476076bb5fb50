"""Decoders on invalid bytes: every message and version, random bytes and damaged ones.

A decoder raises ProtocolError and nothing else, or returns a value that encodes and decodes to itself.
"""

from __future__ import annotations

from random import Random

import pytest

from barnabas.protocol import group_records, headers, transaction_records
from barnabas.protocol.decoder import decode
from barnabas.protocol.encoder import encode
from barnabas.protocol.errors import ProtocolError
from barnabas.protocol.schema import Message
from tests.protocol.values import messages, random_value
from tests.support.effort import examples

RECORDS = [
    group_records.OffsetCommitKey,
    group_records.OffsetCommitValue,
    group_records.GroupMetadataKey,
    group_records.GroupMetadataValue,
    transaction_records.TransactionLogKey,
    transaction_records.TransactionLogValue,
    headers.RequestHeader,
    headers.ResponseHeader,
]

# Bytes that mean something to a decoder: null, empty, one, short and long lengths, signs, the ends of a varint.
TELLING = bytes([0, 0, 0, 1, 1, 2, 3, 4, 8, 127, 128, 129, 254, 255, 255])


@pytest.mark.parametrize("message", [*messages(), *RECORDS], ids=lambda message: message.__name__)
def test_survives(message: type[Message]) -> None:
    for version in message.versions:
        random = Random(f"{message.__name__} {version}")
        for _ in range(examples(3)):
            data = encode(random_value(random, message, version), version)
            for length in random.sample(range(len(data)), min(20, len(data))):
                is_refused(message, version, data[:length])
            for _ in range(examples(40)):
                survives(message, version, damaged(data, random))
            for _ in range(examples(20)):
                survives(message, version, random.randbytes(random.randrange(40)))
                survives(message, version, bytes(random.choices(TELLING, k=random.randrange(40))))


def is_refused(message: type[Message], version: int, data: bytes) -> None:
    try:
        decode(message, version, data)
    except ProtocolError:
        return
    raise AssertionError(f"{message.__name__} v{version} was read from {data.hex()}")


def survives(message: type[Message], version: int, data: bytes) -> None:
    try:
        value = decode(message, version, memoryview(data))
    except ProtocolError:
        return
    except Exception as error:
        raise AssertionError(f"{message.__name__} v{version} of {data.hex()}") from error
    again = decode(message, version, encode(value, version))
    assert again == value or "nan" in repr(value), f"{message.__name__} v{version} of {data.hex()}"


def damaged(data: bytes, random: Random) -> bytes:
    """One to three small changes, each at any place: another byte, bytes cut out, bytes put in, the end cut off."""
    out = bytearray(data)
    for _ in range(random.randint(1, 3)):
        place = random.randrange(len(out) + 1)
        length = random.choice((1, 1, 1, 2, 4, 8))
        match random.randrange(5):
            case 0 | 1:
                out[place : place + 1] = random.choices(TELLING)
            case 2:
                del out[place : place + length]
            case 3:
                out[place:place] = random.choices(TELLING, k=length)
            case 4:
                out[place : place + 1] = random.randbytes(1)
    return bytes(out)
