"""Where the control interface is: the arguments of every `barnabas ctl` action, and a client of it."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit

from barnabas.command.ending import UsageError
from barnabas.control import ControlClient

_URL_VARIABLE: Final = "BARNABAS_CONTROL"
_TOKEN_VARIABLE: Final = "BARNABAS_CONTROL_TOKEN"


def add_control(parser: argparse.ArgumentParser) -> None:
    """Without defaults, since they may come before the action or after it."""
    group = parser.add_argument_group("control interface")
    group.add_argument("--url", default=argparse.SUPPRESS, help=f"its address (default: ${_URL_VARIABLE})")
    group.add_argument("--token", default=argparse.SUPPRESS, help=f"its token (default: ${_TOKEN_VARIABLE})")


def runs(act: Callable[[argparse.Namespace, ControlClient], int]) -> Callable[[argparse.Namespace], int]:
    """`act` as the `run` of a parser."""
    return lambda options: act(options, _client(options))


def _client(options: argparse.Namespace) -> ControlClient:
    url = getattr(options, "url", None) or os.environ.get(_URL_VARIABLE)
    token = getattr(options, "token", None) or os.environ.get(_TOKEN_VARIABLE)
    if not url:
        raise UsageError(f"where is the control interface? Add --url or set {_URL_VARIABLE}")
    if not _is_url(url):
        raise UsageError(f"{url!r} is not the URL of a control interface, such as http://127.0.0.1:36355")
    if not token:
        raise UsageError(f"the control interface needs a token. Add --token or set {_TOKEN_VARIABLE}")
    return ControlClient(url, token)


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme == "http" and bool(parts.hostname) and parts.port is not None
    except ValueError:  # a port that is none, or half of an IPv6 address
        return False
