"""A client of the control interface: HTTP and JSON, one connection a call, so that any thread may use it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit

from barnabas.errors import BrokerFailed, ControlFailed

if TYPE_CHECKING:
    from http.client import HTTPResponse


class ControlClient:
    def __init__(self, url: str, token: str) -> None:
        """`url` is that of the control interface, as `barnabas serve --control` prints it."""
        self.url = url
        self.token = token

    def call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        query: Mapping[str, str] | None = None,
        timeout: float = 30.0,
    ) -> Any:
        """The answer to a request, None if it has none; ControlFailed if it was refused."""
        try:
            with self._ask(method, path, body, query, timeout) as response:
                data = response.read()
        except TimeoutError as error:
            raise BrokerFailed(f"no answer from the control interface at {self.url} within {timeout:g} s") from error
        return json.loads(data) if data else None

    def lines(
        self, method: str, path: str, *, query: Mapping[str, str] | None = None, timeout: float | None = None
    ) -> Iterator[Any]:
        """The lines of an answer that comes bit by bit, each parsed; TimeoutError if none comes for that long."""
        with self._ask(method, path, None, query, timeout) as response:
            for line in response:
                if line.strip():
                    yield json.loads(line)

    @contextmanager
    def _ask(
        self, method: str, path: str, body: object, query: Mapping[str, str] | None, timeout: float | None
    ) -> Iterator[HTTPResponse]:
        from http.client import HTTPConnection, HTTPException

        address = urlsplit(self.url)
        connection = HTTPConnection(address.hostname or "127.0.0.1", address.port, timeout=timeout)
        try:
            try:
                target = f"{path}?{urlencode(query)}" if query else path
                data = None if body is None else json.dumps(body)
                connection.request(method, target, data, {"Authorization": f"Bearer {self.token}"})
                response = connection.getresponse()
                if response.status >= 400:
                    raise _refusal(response)
                yield response
            except TimeoutError:
                raise
            except (OSError, HTTPException) as error:
                raise BrokerFailed(f"no answer from the control interface at {self.url}: {error}") from error
        finally:
            connection.close()


def _refusal(response: HTTPResponse) -> ControlFailed:
    data = response.read()
    try:
        fault = json.loads(data)
        return ControlFailed(response.status, fault["error"], fault.get("field"))
    except (ValueError, KeyError, TypeError):
        return ControlFailed(response.status, data.decode(errors="replace") or response.reason)
