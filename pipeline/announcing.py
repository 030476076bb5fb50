"""Tells a console how a pipeline is doing: the one at BARNABAS_CONSOLE, which must be on this machine, or else the one
at the usual address, if it is the console of the pipeline's own broker.

A thread posts the state about once a second. Whether somebody listens makes no difference to the pipeline.
"""

from __future__ import annotations

import base64
import ipaddress
import json
import os
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from http.client import HTTPException
from typing import Any, Final
from urllib.error import URLError
from urllib.parse import unquote, urlsplit
from urllib.request import Request, urlopen

from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.model import ParquetSink, Pipeline, TopicSink
from barnabas.pipeline.progress import QueryState

ADDRESS: Final = "BARNABAS_CONSOLE"
TOKEN: Final = "BARNABAS_CONSOLE_TOKEN"
USUAL: Final = "http://127.0.0.1:9080"
_SECONDS: Final = 1.0
_PATIENCE: Final = 2.0
_LONGEST_PLAN: Final = 8000


class Announcer:
    """Posts until it is closed. `told` gives what there is to tell at that moment."""

    def __init__(self, address: str, told: Callable[[], Mapping[str, Any]]) -> None:
        self._request = _request(address)
        self._told = told
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._announce, name="announcer", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._over.set()
        self._thread.join(2 * _PATIENCE)

    def _announce(self) -> None:
        while True:
            is_last = self._over.wait(_SECONDS)
            with suppress(URLError, OSError, HTTPException):  # the console may come later, or have gone
                urlopen(Request(data=json.dumps(self._told()).encode(), **self._request), timeout=_PATIENCE).close()
            if is_last:
                return


def console_of(bootstrap: str, usual: str = USUAL) -> str | None:
    """Whom to tell: None if nobody wants to know."""
    configured = os.environ.get(ADDRESS)
    if configured is not None:
        return configured or None
    places = {_place(each) for each in bootstrap.split(",")}
    if not any(_is_here(host) for host, _ in places):
        return None
    try:
        with urlopen(f"{usual}/api/overview", timeout=_PATIENCE) as answer:
            brokers = json.load(answer)["brokers"]
        ports = {_place(str(broker["address"]))[1] for broker in brokers}
    except (URLError, OSError, HTTPException, ValueError, KeyError, TypeError):
        return None  # nobody is there, or somebody else, or it wants to know who asks
    return usual if any(_is_here(host) and port in ports for host, port in places) else None


def _place(address: str) -> tuple[str, str]:
    host, _, port = address.strip().rpartition(":")
    return host.strip("[]"), port


def _request(address: str) -> dict[str, Any]:
    """Where to post, and who we are: a user in the address, or a token in the environment."""
    parts = urlsplit(address if "//" in address else f"http://{address}")
    host = parts.hostname or ""
    if not _is_here(host):
        raise PipelineError(f"{ADDRESS} is {host!r}, but pipelines announce themselves only on this machine")
    headers = {"Content-Type": "application/json"}
    if parts.username is not None:
        user = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
        headers["Authorization"] = f"Basic {base64.b64encode(user).decode()}"
    elif os.environ.get(TOKEN):
        headers["Authorization"] = f"Bearer {os.environ[TOKEN]}"
    place = parts.netloc.rpartition("@")[2]
    return {"url": f"http://{place}/api/pipelines", "headers": headers, "method": "POST"}


def _is_here(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def bad_records(states: Iterable[QueryState]) -> int:
    """Every query that reads a source counts the same bad records of it."""
    most: dict[str, int] = {}
    for state in states:
        for source, count in state.bad_of.items():
            most[source] = max(most.get(source, 0), count)
    return sum(most.values())


class Announcement:
    """What is told of one run."""

    def __init__(self, pipeline: Pipeline, states: Mapping[str, QueryState], *, once: bool) -> None:
        self._pipeline = pipeline
        self._states = states
        self._once = once
        self._began_ms = int(time.time() * 1000)
        self._run = uuid.uuid4().hex
        self.is_heard = False
        self.plans: dict[str, str] = {}  # Spark's, by query
        self.state = "starting"
        self.words = ""

    def __call__(self) -> dict[str, Any]:
        pipeline = self._pipeline
        states = list(self._states.values())
        sources = [topic for source in pipeline.sources for topic in source.topics]
        return {
            "name": pipeline.name,
            "run": self._run,
            "state": self.state,
            "words": self.words,
            "began_ms": self._began_ms,
            "topics": [*sources, *(sink.topic for sink in pipeline.sinks if isinstance(sink, TopicSink))],
            "bad": bad_records(states),
            "plan": "\n\n".join(self._plan(state) for state in states),
            "queries": [
                {
                    "name": state.name,
                    "sources": [{"topic": topic} for topic in sources],
                    "sinks": self._sinks(state.name),
                    "read": state.rows_in,
                    "written": state.rows_out,
                    "bad": state.bad,
                    "late": state.late,
                    "lag": sum(state.lag.values()),
                    "end": state.rows_in + sum(state.lag.values()) if self._once else None,
                }
                for state in states
            ],
        }

    def _plan(self, state: QueryState) -> str:
        plan = self.plans.get(state.name, "")
        return f"{state.name}: {state.how}\n{plan[:_LONGEST_PLAN]}{'…' if len(plan) > _LONGEST_PLAN else ''}".strip()

    def _sinks(self, query: str) -> list[dict[str, str]]:
        for sink in self._pipeline.sinks:
            if sink.name == query and isinstance(sink, TopicSink):
                return [{"topic": sink.topic}]
            if sink.name == query and isinstance(sink, ParquetSink):
                return [{"path": sink.path}]
        return [{"topic": self._pipeline.bad_records.topic}] if self._pipeline.bad_records.topic else []
