"""What can go wrong between a test and its broker."""

from __future__ import annotations


class BarnabasError(Exception):
    """All that this package raises of its own."""


class BrokerFailed(BarnabasError):
    """The broker did not start, or is not running. The message ends in what it logged."""


class ControlFailed(BarnabasError):
    """The broker refused what it was asked for; `field` names what was wrong with it, where one thing was."""

    def __init__(self, status: int, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.field = field
