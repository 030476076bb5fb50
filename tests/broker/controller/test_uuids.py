from uuid import UUID

import pytest

from barnabas.broker.controller.uuids import random_uuid, uuid_from_string, uuid_to_string
from barnabas.protocol.schema import ZERO_UUID


def test_as_kafka_prints_it() -> None:
    uuid = UUID("dd29b85c-e355-4b6a-9331-733af5a8d363").bytes
    assert uuid_to_string(uuid) == "3Sm4XONVS2qTMXM69ajTYw"
    assert uuid_from_string("3Sm4XONVS2qTMXM69ajTYw") == uuid
    assert uuid_to_string(ZERO_UUID) == "AAAAAAAAAAAAAAAAAAAAAA"
    assert uuid_to_string(b"\xfb\xff" * 8) == "-__7__v_-__7__v_-__7_w"


@pytest.mark.parametrize("text", ["", "AAAA", "AAAAAAAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAA+/", "ä" * 22, "A" * 24])
def test_invalid_uuids(text: str) -> None:
    with pytest.raises(ValueError, match="not an id"):
        uuid_from_string(text)


def test_a_random_one_is_of_version_4() -> None:
    uuid = UUID(bytes=random_uuid(lambda size: bytes(size)))
    assert uuid.version == 4
    assert UUID(bytes=random_uuid(lambda size: b"\xff" * size)).version == 4


def test_a_random_one_does_not_begin_with_a_dash() -> None:
    drawn = iter([b"\xfb" * 16, b"\xf8" * 16, b"\xfc" * 16])
    assert uuid_to_string(random_uuid(lambda size: next(drawn))) == "_Pz8_Pz8TPy8_Pz8_Pz8_A"
