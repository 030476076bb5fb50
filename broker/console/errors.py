"""What the API refuses, in a sentence for whoever sits in front of the page."""

from __future__ import annotations

from http import HTTPStatus


class ConsoleError(Exception):
    status = HTTPStatus.BAD_REQUEST


class NotFound(ConsoleError):
    status = HTTPStatus.NOT_FOUND


class Conflict(ConsoleError):
    """It cannot be done as things are."""

    status = HTTPStatus.CONFLICT


class Unauthorized(ConsoleError):
    """This is not the password of a user."""

    status = HTTPStatus.UNAUTHORIZED


class Forbidden(ConsoleError):
    """The console may only look, or this user may not do this."""

    status = HTTPStatus.FORBIDDEN
