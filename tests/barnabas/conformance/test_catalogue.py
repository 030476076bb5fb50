import re
from collections import Counter

import pytest

from barnabas.client.connection import Address
from barnabas.conformance.catalogue import Room, parse_need, rooms
from barnabas.conformance.reports.summary import by_room, in_words
from barnabas.conformance.runner import selected
from barnabas.conformance.target import Target
from barnabas.conformance.verdict import Result, Verdict
from barnabas.protocol.api import ApiKey
from barnabas.protocol.schema import Versions

CHECKS = [check for room in rooms() for check in room.checks]


def test_every_check_has_a_name_of_its_own_in_its_room():
    assert [name for name, count in Counter(check.name for check in CHECKS).items() if count > 1] == []
    for room in rooms():
        for check in room.checks:
            assert check.room == room.name
            assert re.fullmatch(r"[a-z-]+\.[a-z0-9-]+", check.name)


def test_every_check_has_a_rule_a_basis_and_its_needs():
    for check in CHECKS:
        assert re.fullmatch(r".{15,}[.)]", check.rule), check.name
        assert re.match(r"KIP-\d+|Protocol guide: |Implementation: |Documentation: ", check.stands_on), check.name
        assert check.needs, check.name


def test_a_need_is_an_api_and_perhaps_versions():
    assert parse_need("Fetch") == (ApiKey.FETCH, Versions(0, 32767))
    assert parse_need("Fetch 13+") == (ApiKey.FETCH, Versions(13, 32767))
    assert parse_need("Fetch 4-12") == (ApiKey.FETCH, Versions(4, 12))


def test_a_room_takes_a_checks_rule_from_its_docstring():
    room = Room("room", "A room")

    @room.check("door", "KIP-1", "Fetch 4+", features={"transaction.version": 2}, alone=True)
    def door(probe):
        """Doors
        open."""

    (check,) = room.checks
    assert (check.name, check.rule, check.stands_on) == ("room.door", "Doors open.", "KIP-1")
    assert (check.needs, check.features, check.alone) == (
        {ApiKey.FETCH: Versions(4, 32767)},
        {"transaction.version": 2},
        True,
    )
    assert check.body is door


@pytest.mark.parametrize(
    ("patterns", "names"),
    [
        (["offsets.kept"], ["offsets.kept"]),
        (["framing.cut-*"], ["framing.cut-header", "framing.cut-body"]),
        (["*.codecs", "list-offsets.empty"], ["produce.codecs", "list-offsets.empty"]),
        (["nothing"], []),
    ],
)
def test_checks_are_selected_by_patterns(patterns, names):
    assert [check.name for check in selected(patterns)] == names


def test_a_room_is_selected_by_its_name_alone():
    assert {check.room for check in selected(["fetch"])} == {"fetch"}
    assert len(selected(["fetch"])) > 10


def target(versions, features=None):
    address = Address("127.0.0.1", 9092)
    return Target(address, {0: address}, 0, versions, [], features or {})


def test_a_broker_lacks_what_it_does_not_advertise():
    (check,) = selected(["list-offsets.max-timestamp"])
    produce = {ApiKey.PRODUCE: Versions(3, 12)}
    assert target(produce).lacks(check) == "ListOffsets is not advertised"
    old = {**produce, ApiKey.LIST_OFFSETS: Versions(1, 5)}
    assert target(old).lacks(check) == "ListOffsets is advertised from version 1 to 5, and this needs 7+"
    assert target({**produce, ApiKey.LIST_OFFSETS: Versions(1, 7)}).lacks(check) is None


def test_a_broker_lacks_a_feature_that_is_not_finalized():
    (check,) = selected(["transactions.implicit-commit"])
    versions = {key: Versions(0, 32767) for key in check.needs}
    assert (
        target(versions, {"transaction.version": 1}).lacks(check)
        == "transaction.version is at level 1, and this needs 2"
    )
    assert target(versions, {"transaction.version": 2}).lacks(check) is None


def test_results_are_counted_and_kept_in_their_rooms():
    checks = selected(["produce.codecs", "fetch.log-start"])
    results = [Result(checks[0], Verdict.PASSED, "", "", 0.1), Result(checks[1], Verdict.FAILED, "a", "b", 0.1)]
    assert in_words(results) == "1 passed, 1 failed, 0 not applicable"
    assert [(room.name, len(found)) for room, found in by_room(results)] == [("produce", 1), ("fetch", 1)]
