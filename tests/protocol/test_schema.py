from __future__ import annotations

import pytest

from barnabas.protocol.errors import ProtocolError
from barnabas.protocol.schema import (
    STRING,
    ZERO_UUID,
    Bytes,
    Int16,
    Int32,
    Message,
    String,
    Struct,
    Uuid,
    Versions,
    field,
    wire_types,
)


class Parcel(Message, versions="0-3", flexible="2+"):
    address: String = field("0+")
    weight: Int32 = field("1+", default=-1)
    sender: String | None = field("0+", nullable="1+", default=None)
    items: list[Item] = field("0+", default=())


class Item(Struct):
    name: String = field("0+")
    prices: list[Int16] | None = field("0+", nullable="0+")


class TestVersions:
    @pytest.mark.parametrize(
        ("text", "inside", "outside"),
        [
            ("0-3", [0, 1, 2, 3], [-1, 4]),
            ("4", [4], [3, 5]),
            ("2+", [2, 3, 32767], [0, 1]),
            ("none", [], [-1, 0, 1]),
        ],
    )
    def test_a_range_as_kafka_writes_it(self, text: str, inside: list[int], outside: list[int]) -> None:
        versions = Versions.parse(text)
        assert all(version in versions for version in inside)
        assert not any(version in versions for version in outside)

    def test_can_be_walked(self) -> None:
        assert list(Versions.parse("2-4")) == [2, 3, 4]
        assert list(Versions.parse("none")) == []


class TestStruct:
    def test_is_made_of_keywords(self) -> None:
        item = Item(name="tea", prices=[1, 2])
        assert (item.name, item.prices) == ("tea", [1, 2])

    def test_what_has_no_default_must_be_given(self) -> None:
        with pytest.raises(TypeError, match="prices"):
            Item(name="tea")  # type: ignore[call-arg]

    def test_what_has_a_default_need_not(self) -> None:
        parcel = Parcel(address="here")
        assert (parcel.weight, parcel.sender, parcel.items) == (-1, None, [])

    def test_a_default_list_belongs_to_one_instance(self) -> None:
        first, second = Parcel(address="here"), Parcel(address="there")
        first.items.append(Item(name="tea", prices=None))
        assert second.items == []

    def test_has_slots_and_nothing_else(self) -> None:
        parcel = Parcel(address="here")
        with pytest.raises(AttributeError):
            parcel.adress = "there"  # type: ignore[attr-defined]
        with pytest.raises(TypeError, match="adress"):
            Parcel(adress="there")  # type: ignore[call-arg]

    def test_equals_what_has_the_same_class_and_the_same_values(self) -> None:
        assert Item(name="tea", prices=[1]) == Item(name="tea", prices=[1])
        assert Item(name="tea", prices=[1]) != Item(name="tea", prices=[2])
        assert Item(name="tea", prices=None) != Parcel(address="tea")

    def test_shows_its_values(self) -> None:
        assert repr(Item(name="tea", prices=[1])) == "Item(name='tea', prices=[1])"

    def test_cannot_be_a_key_since_it_changes(self) -> None:
        with pytest.raises(TypeError, match="unhashable"):
            hash(Item(name="tea", prices=None))


class TestMessage:
    def test_knows_its_versions(self) -> None:
        assert Parcel.versions == Versions(0, 3)
        assert 1 not in Parcel.flexible
        assert 2 in Parcel.flexible

    def test_refuses_an_unknown_version(self) -> None:
        Parcel.check_version(3)
        with pytest.raises(ProtocolError, match="Parcel has no version 4"):
            Parcel.check_version(4)


class Unwired(Struct):
    count: int = field("0")


class TestWireTypes:
    def test_come_from_the_annotations(self) -> None:
        types = wire_types(Parcel)
        assert types["address"] is STRING
        assert types["sender"] is STRING  # None is the field's business
        assert types["items"] == [Item]
        assert types["weight"].code == "i"
        assert wire_types(Item)["prices"][0].code == "h"

    def test_are_resolved_once(self) -> None:
        """Every codec needs them, and the first request of each version waits for its codecs."""
        assert wire_types(Parcel) is wire_types(Parcel)

    def test_have_a_zero(self) -> None:
        class Zeroes(Struct):
            text: String = field("0")
            blob: Bytes = field("0")
            id: Uuid = field("0")

        assert [wire_type.zero for wire_type in wire_types(Zeroes).values()] == ["", b"", ZERO_UUID]

    def test_a_plain_python_type_is_not_one(self) -> None:
        with pytest.raises(TypeError, match="no wire type"):
            wire_types(Unwired)
