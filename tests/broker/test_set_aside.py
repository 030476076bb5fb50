from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from barnabas.broker.set_aside import Entry, SetAside


@pytest.fixture
def set_aside() -> SetAside:
    return SetAside()


def test_what_was_set_aside_is_listed_with_its_reason(set_aside):
    set_aside.add("log", "orders-0", "disk full")
    set_aside.add("group", "billing", ValueError("too large"))

    assert set_aside.entries() == [
        Entry("log", "orders-0", "disk full"),
        Entry("group", "billing", "ValueError: too large"),
    ]
    assert ("log", "orders-0") in set_aside
    assert ("log", "orders-1") not in set_aside


def test_each_reason_is_logged_once(set_aside):
    with capture_logs() as logged:
        for reason in "disk full", "disk full", "no such file", "no such file":
            set_aside.add("log", "orders-0", reason)

    assert [each["reason"] for each in logged] == ["disk full", "no such file"]
    assert set_aside.entries() == [Entry("log", "orders-0", "no such file")]


def test_an_exception_is_logged_with_its_traceback_and_a_text_without(set_aside):
    error = ValueError("too large")
    with capture_logs() as logged:
        set_aside.add("group", "billing", error)
        set_aside.add("log", "orders-0", "disk full")
        set_aside.add("log", "orders-1", OSError("disk full"))

    assert [each["exc_info"] for each in logged] == [error, None, None]
    assert [each["reason"] for each in logged] == ["ValueError: too large", "disk full", "disk full"]


def test_what_works_again_is_no_longer_listed(set_aside):
    set_aside.add("log", "orders-0", "disk full")
    with capture_logs() as logged:
        set_aside.remove("log", "orders-0")
        set_aside.remove("log", "never-there")

    assert set_aside.entries() == []
    assert [each["event"] for each in logged] == ["no longer set aside"]
