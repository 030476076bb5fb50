"""Logging: to standard error, for people on a terminal and as JSON otherwise."""

from __future__ import annotations

import asyncio
import io
import logging
import sys
from collections.abc import MutableMapping
from typing import Any, TextIO

import structlog

from barnabas.printable import printable, printable_lines


def configure(stream: Any = None) -> None:
    stream = stream or sys.stderr
    on_terminal = stream.isatty()
    processors: list[Any] = [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="%H:%M:%S.%f" if on_terminal else "iso", utc=not on_terminal),
    ]
    if on_terminal:
        processors += [_printable_values, structlog.dev.ConsoleRenderer(exception_formatter=_printable_traceback)]
    else:
        processors += [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    structlog.configure(
        processors=processors,
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.WriteLoggerFactory(stream),
        cache_logger_on_first_use=True,
    )


def _printable_values(logger: Any, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Text that clients chose, such as the id of a group, goes to the terminal with its control characters escaped.

    Only strings are shown as they are; for everything else the renderer shows the `repr`, which escapes them itself.
    """
    return {key: printable(value) if isinstance(value, str) else value for key, value in event.items()}


def _printable_traceback(stream: TextIO, exc_info: Any) -> None:
    text = io.StringIO()
    structlog.dev.plain_traceback(text, exc_info)
    stream.write(printable_lines(text.getvalue()))


def loop_failed(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """For `loop.set_exception_handler`: asyncio's own errors go to the same log."""
    structlog.get_logger().error(context["message"], exc_info=context.get("exception"))
