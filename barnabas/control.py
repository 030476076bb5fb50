"""A client of the control interface: HTTP and JSON, one connection per call, so any thread may use it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit

from barnabas.errors import BrokerFailed, ControlFailed

if TYPE_CHECKING:
    from http.client import HTTPConnection, HTTPResponse

__tracebackhide__ = True  # pytest shows the line of the test instead


class ControlClient:
    def __init__(self, url: str, token: str) -> None:
        """`url` is the address that `barnabas serve --control` prints."""
        self.url = url
        self.token = token
        self.changes = 0  # how many calls may have changed something

    def call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        query: Mapping[str, str] | None = None,
        timeout: float = 30.0,
    ) -> Any:
        """Send a request and return the response, or None if it is empty. Raise ControlFailed if it was refused."""
        from http.client import HTTPException

        if method != "GET":
            self.changes += 1
        connection = self._connection(timeout)
        try:
            data = self._ask(connection, method, path, body, query).read()
        except TimeoutError:
            raise BrokerFailed(f"no response from the control interface at {self.url} within {timeout:g} s") from None
        except (OSError, HTTPException) as error:
            raise self._no_answer(error) from None
        finally:
            connection.close()
        return json.loads(data) if data else None

    def lines(
        self, method: str, path: str, *, query: Mapping[str, str] | None = None, timeout: float | None = None
    ) -> Iterator[Any]:
        """Yield the parsed lines of a streaming response. Raise TimeoutError if none arrives for that long."""
        from http.client import HTTPException

        connection = self._connection(timeout)
        try:
            for line in self._ask(connection, method, path, None, query):
                if line.strip():
                    yield json.loads(line)
        except TimeoutError:
            raise
        except (OSError, HTTPException) as error:
            raise self._no_answer(error) from None
        finally:
            connection.close()

    def _connection(self, timeout: float | None) -> HTTPConnection:
        from http.client import HTTPConnection

        address = urlsplit(self.url)
        return HTTPConnection(address.hostname or "127.0.0.1", address.port, timeout=timeout)

    def _ask(
        self, connection: HTTPConnection, method: str, path: str, body: object, query: Mapping[str, str] | None
    ) -> HTTPResponse:
        target = f"{path}?{urlencode(query)}" if query else path
        data = None if body is None else json.dumps(body)
        connection.request(method, target, data, {"Authorization": f"Bearer {self.token}"})
        response = connection.getresponse()
        if response.status >= 400:
            raise _refusal(response)
        return response

    def _no_answer(self, error: Exception) -> BrokerFailed:
        reason = getattr(error, "strerror", None) or error
        return BrokerFailed(f"no response from the control interface at {self.url}: {reason}")


def _refusal(response: HTTPResponse) -> ControlFailed:
    data = response.read()
    try:
        fault = json.loads(data)
        return ControlFailed(response.status, fault["error"], fault.get("field"))
    except (ValueError, KeyError, TypeError):
        return ControlFailed(response.status, data.decode(errors="replace") or response.reason)
