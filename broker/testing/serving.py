"""What `barnabas serve` needs to run a broker for a test: data that is removed with it, and an end with its parent."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import secrets
import shutil
import tempfile
from collections.abc import Callable
from typing import Final

TOKEN_VARIABLE: Final = "BARNABAS_CONTROL_TOKEN"
EPHEMERAL_MARK: Final = ".barnabas-ephemeral"
_SECONDS_BETWEEN_CHECKS: Final = 0.5


class Refused(Exception):
    """Why it cannot be done as requested."""


class EphemeralData:
    """A data directory that is removed at the end. A non-empty one is refused, unless it was created as such."""

    def __init__(self, folder: str | None) -> None:
        self.kept = False
        if folder is None:
            folder = tempfile.mkdtemp(prefix="barnabas-")
        os.makedirs(folder, exist_ok=True)
        if os.listdir(folder) and not os.path.exists(os.path.join(folder, EPHEMERAL_MARK)):
            raise Refused(f"{folder} is not empty, and would be removed at the end: --ephemeral needs a new one")
        with open(os.path.join(folder, EPHEMERAL_MARK), "w", encoding="utf-8"):
            pass
        self.folder = os.path.abspath(folder)

    def end(self) -> None:
        if not self.kept:
            shutil.rmtree(self.folder, ignore_errors=True)


def control_token(host: str) -> tuple[str, bool]:
    """The token that requests must carry, and whether it was generated here and must be printed."""
    token = os.environ.get(TOKEN_VARIABLE)
    if token:
        return token, False
    if not is_loopback(host):
        raise Refused(f"--control on {host} lets others in: set {TOKEN_VARIABLE} to a token that they must know")
    return secrets.token_urlsafe(24), True


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def watch_parent(loop: asyncio.AbstractEventLoop, pid: int, gone: Callable[[], None]) -> None:
    """Call `gone` when this process's parent ends, for whatever reason. `pid` is the expected parent.

    The system reports it through the parent's pidfd, where available; elsewhere this process gets another parent.
    (A signal on the parent's death comes when the thread that started us ends, which may be much earlier.)
    """
    if os.getppid() != pid:  # it is already gone
        loop.call_soon(gone)
        return
    try:
        descriptor = os.pidfd_open(pid)
        loop.add_reader(descriptor, _once(loop, descriptor, gone))
    except (AttributeError, OSError):
        _check_parent(loop, pid, gone)
        return
    if os.getppid() != pid:
        loop.call_soon(gone)


def _once(loop: asyncio.AbstractEventLoop, descriptor: int, gone: Callable[[], None]) -> Callable[[], None]:
    def readable() -> None:
        loop.remove_reader(descriptor)
        os.close(descriptor)
        gone()

    return readable


def _check_parent(loop: asyncio.AbstractEventLoop, pid: int, gone: Callable[[], None]) -> None:
    if os.getppid() == pid:
        loop.call_later(_SECONDS_BETWEEN_CHECKS, _check_parent, loop, pid, gone)
    else:
        gone()
