"""Logging: to standard error, for people on a terminal and as JSON otherwise."""

from __future__ import annotations

import asyncio
import logging
import sys
from typing import Any

import structlog


def configure(stream: Any = None) -> None:
    stream = stream or sys.stderr
    on_terminal = stream.isatty()
    processors: list[Any] = [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="%H:%M:%S.%f" if on_terminal else "iso", utc=not on_terminal),
    ]
    if on_terminal:
        processors.append(structlog.dev.ConsoleRenderer())
    else:
        processors += [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    structlog.configure(
        processors=processors,
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.WriteLoggerFactory(stream),
        cache_logger_on_first_use=True,
    )


def loop_failed(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """For `loop.set_exception_handler`: asyncio's own complaints go where all others go."""
    structlog.get_logger().error(context["message"], exc_info=context.get("exception"))
