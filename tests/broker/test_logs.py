"""Logs go to one stream and have one format, whichever code writes them."""

import asyncio
import io
import json

import pytest
import structlog

from barnabas.broker import logs


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture(autouse=True)
def own_configuration():
    """Logging is the process's own, so each test gives back what it found."""
    before = structlog.get_config()
    yield
    structlog.configure(**before)


def test_json_has_one_object_per_line():
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


def test_names_chosen_by_clients_do_not_control_the_terminal():
    stream = Terminal()
    logs.configure(stream)
    try:
        raise RuntimeError("\x9b2J of a client")
    except RuntimeError:
        structlog.get_logger().exception("failed", group="\x1b]0;owned\x07", members=["\x1b[2J"])
    shown = stream.getvalue()
    assert r"\x1b]0;owned\x07" in shown
    assert r"\x1b[2J" in shown
    assert r"\x9b2J of a client" in shown
    assert not {"\x07", "\x9b"} & set(shown)
    assert "\x1b]" not in shown
    assert "test_logs.py" in shown  # the traceback


def test_debug_messages_are_left_out():
    stream = io.StringIO()
    logs.configure(stream)
    structlog.get_logger().debug("something")
    assert stream.getvalue() == ""


async def test_asyncios_own_errors_go_to_the_same_log():
    """By default asyncio writes plain text between the JSON lines, which readers of the log could not parse."""
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
