"""Public keys of those who sign tokens: a JSON Web Key Set, from a file or from a URL.

A file is read when it changes. A URL is fetched on a thread, again after `refresh_ms`, and also when a token names a
key that is not known; the loop never waits for it.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import unquote, urlparse
from urllib.request import Request, urlopen

import structlog

from barnabas.broker.security.errors import SecurityError

log = structlog.get_logger()

_SECONDS_TO_FETCH: Final = 10.0
_LARGEST_SET: Final = 1024 * 1024
# How soon an unknown key may cause another fetch: tokens with keys that do not exist must not cause a flood.
_SOONEST_MS: Final = 10_000


def _keys(content: bytes) -> dict[str | None, Any]:
    """The keys of a set by their ids. ValueError if it is not a key set."""
    import jwt

    try:
        found = jwt.PyJWKSet.from_dict(json.loads(content))
    except (jwt.PyJWTError, AttributeError, TypeError) as error:
        raise ValueError(f"it is not a set of keys ({type(error).__name__})") from None
    return {key.key_id: key.key for key in found.keys if key.public_key_use in (None, "sig")}


class FileKeys:
    def __init__(self, path: str, name: str) -> None:
        """SecurityError, which calls the setting `name`, if there are no keys."""
        self._path = path
        self._name = name
        self._seen = self._state()
        try:
            self._keys = self._read()
        except (OSError, ValueError) as error:
            raise SecurityError(f"{name}={path} cannot be used: {_reason(error)}") from None

    def find(self, key_id: str | None) -> Any | None:
        seen = self._state()
        if seen != self._seen:
            self._seen = seen
            try:
                self._keys = self._read()
            except (OSError, ValueError) as error:
                log.error("keys cannot be read; the previous ones stay in use", path=self._path, reason=_reason(error))
        return _found(self._keys, key_id)

    def _read(self) -> dict[str | None, Any]:
        with open(self._path, "rb") as file:
            return _keys(file.read(_LARGEST_SET))

    def _state(self) -> tuple[int, int] | None:
        try:
            found = os.stat(self._path)
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size


class UrlKeys:
    def __init__(self, url: str, refresh_ms: int, now_ms: Callable[[], int], loop: asyncio.AbstractEventLoop) -> None:
        self._url = url
        self._refresh_ms = refresh_ms
        self._now_ms = now_ms
        self._loop = loop
        self._keys: dict[str | None, Any] = {}
        self._asked_at_ms = 0
        self._is_fetching = False
        self._fetch()

    def find(self, key_id: str | None) -> Any | None:
        found = _found(self._keys, key_id)
        age_ms = self._now_ms() - self._asked_at_ms
        if age_ms >= (self._refresh_ms if found is not None else min(_SOONEST_MS, self._refresh_ms)):
            self._fetch()
        return found

    def _fetch(self) -> None:
        if not self._is_fetching:
            self._is_fetching = True
            self._asked_at_ms = self._now_ms()
            self._loop.run_in_executor(None, _fetched, self._url).add_done_callback(self._arrived)

    def _arrived(self, fetching: asyncio.Future[dict[str | None, Any]]) -> None:
        self._is_fetching = False
        if fetching.cancelled():
            return
        error = fetching.exception()
        if error is None:
            self._keys = fetching.result()
        else:
            log.error("keys cannot be fetched; the previous ones stay in use", url=self._url, reason=_reason(error))


def _fetched(url: str) -> dict[str | None, Any]:
    with urlopen(Request(url, headers={"Accept": "application/json"}), timeout=_SECONDS_TO_FETCH) as answer:
        return _keys(answer.read(_LARGEST_SET))


def _found(keys: dict[str | None, Any], key_id: str | None) -> Any | None:
    """A token that names no key is checked with the only one there is."""
    if key_id is None and len(keys) == 1:
        return next(iter(keys.values()))
    return keys.get(key_id)


def _reason(error: BaseException) -> str:
    return str(getattr(error, "strerror", None) or getattr(error, "reason", None) or error)


def keys_at(
    url: str, name: str, refresh_ms: int, now_ms: Callable[[], int], loop: asyncio.AbstractEventLoop
) -> FileKeys | UrlKeys:
    parsed = urlparse(url)
    if parsed.scheme == "file":
        return FileKeys(unquote(parsed.path), name)
    if parsed.scheme in ("http", "https"):
        return UrlKeys(url, refresh_ms, now_ms, loop)
    raise SecurityError(f"{name} is {url!r}, but it must begin with file://, https:// or http://")
