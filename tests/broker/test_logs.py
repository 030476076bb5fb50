"""Logs go to one stream, in one form, whoever writes them."""

import asyncio
import io
import json

import pytest
import structlog

from broker import logs


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture(autouse=True)
def own_configuration():
    """Logging is the process's own, so each test gives back what it found."""
    before = structlog.get_config()
    yield
    structlog.configure(**before)


def test_json_one_object_a_line():
    stream = io.StringIO()
    logs.configure(stream)
    structlog.get_logger().warning("something", peer="127.0.0.1:1", text="two\nlines")
    structlog.get_logger().info("something else")
    first, second = map(json.loads, stream.getvalue().splitlines())
    assert first.pop("timestamp").endswith("Z")
    assert first == {"event": "something", "level": "warning", "peer": "127.0.0.1:1", "text": "two\nlines"}
    assert second["level"] == "info"


def test_an_exception_is_a_field_of_its_line():
    stream = io.StringIO()
    logs.configure(stream)
    try:
        raise RuntimeError("a bug")
    except RuntimeError:
        structlog.get_logger().exception("failed")
    (line,) = stream.getvalue().splitlines()
    assert "RuntimeError: a bug" in json.loads(line)["exception"]


def test_for_people_on_a_terminal():
    stream = Terminal()
    logs.configure(stream)
    structlog.get_logger().warning("something", peer="127.0.0.1:1")
    shown = stream.getvalue()
    assert "something" in shown
    assert not shown.startswith("{")


def test_what_only_its_author_wants_to_know_is_left_out():
    stream = io.StringIO()
    logs.configure(stream)
    structlog.get_logger().debug("something")
    assert stream.getvalue() == ""


async def test_what_asyncio_complains_about_goes_the_same_way():
    """By itself asyncio would write plain text beside the JSON, which whoever reads the log could not parse."""
    stream = io.StringIO()
    logs.configure(stream)
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(logs.loop_failed)
    called = asyncio.Event()

    def broken():
        called.set()
        raise RuntimeError("a bug")

    loop.call_soon(broken)
    await called.wait()
    (line,) = map(json.loads, stream.getvalue().splitlines())
    assert line["level"] == "error"
    assert "broken" in line["event"]
    assert "RuntimeError: a bug" in line["exception"]
