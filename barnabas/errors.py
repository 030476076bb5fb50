"""The exceptions that a test can get from its broker."""

from __future__ import annotations


class BarnabasError(Exception):
    """The base class of this package's exceptions."""


class BrokerFailed(BarnabasError):
    """The broker did not start, or is not running. The message ends with the broker's log."""


class ControlFailed(BarnabasError):
    """The broker refused a request. `field` names the wrong field if there is exactly one."""

    def __init__(self, status: int, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.field = field
