"""A broker as an object: started, asked, emptied, crashed and stopped by the test that uses it."""

from __future__ import annotations

import asyncio
import os
import selectors
import shutil
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple

from barnabas.client import ControlClient
from barnabas.clock import Clock
from barnabas.errors import BarnabasError, BrokerFailed, ControlFailed

if TYPE_CHECKING:
    from barnabas.faults import Faults
    from barnabas.journal import Journal
    from barnabas.state import State
    from barnabas.strict import Strict

_LAUNCHER: Final = Path(__file__).with_name("launch.py")
_TOKEN_VARIABLE: Final = "BARNABAS_CONTROL_TOKEN"
_EVERY_ADDRESS: Final = ("", "0.0.0.0", "::", "[::]")
_SECONDS_TO_READY: Final = 60.0
_SECONDS_TO_END: Final = 30.0
_LINES_OF_LOG: Final = 100


class Snapshot(NamedTuple):
    """A state of the broker, to be restored."""

    name: str


class Barnabas:
    """A broker in a process of its own, on a free port of the loopback interface.

        with Barnabas(num_partitions=3) as broker:
            producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)

    Settings have Kafka's names: as a mapping, or as keywords with underscores for the dots. The broker is ready when
    the block begins, and gone when it ends, or when this process ends in whatever way. Its data is in a temporary
    folder and goes with it, unless `data` names one. `async with` does the same without blocking the loop.
    """

    def __init__(
        self,
        settings: Mapping[str, object] | None = None,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        data: str | os.PathLike[str] | None = None,
        journal: bool = True,
        strict: bool = False,
        arguments: tuple[str, ...] = (),
        **more: object,
    ) -> None:
        """`journal` and `strict` say whether it begins with them; `arguments` are further ones for `barnabas serve`."""
        self.settings = setting_texts(settings, more)
        self.data = None if data is None else Path(data)
        self._host = host
        self._port = port
        self._arguments = (
            *(("--journal",) if journal else ()),
            *(("--strict",) if strict else ()),
            *arguments,
        )
        self._process: subprocess.Popen[bytes] | None = None
        self._client: ControlClient | None = None
        self._temporary: str | None = None
        self._log: IO[bytes] = tempfile.TemporaryFile(prefix="barnabas-log-")  # noqa: SIM115, open as long as we are
        self._end: weakref.finalize[Any, Barnabas] | None = None
        self._topics = count(1)
        self.seconds_to_ready = 0.0

    # --- where it is ---

    @property
    def bootstrap_servers(self) -> str:
        """HOST:PORT, for clients on this machine."""
        host = "127.0.0.1" if self._host in _EVERY_ADDRESS else self._host
        return f"[{host}]:{self.port}" if ":" in host and not host.startswith("[") else f"{host}:{self.port}"

    @property
    def port(self) -> int:
        if not self._port:
            raise BrokerFailed("the broker has not been started")
        return self._port

    @property
    def pid(self) -> int:
        return self._running().pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def control(self) -> ControlClient:
        """The control interface, for what has no method here."""
        if self._client is None:
            raise BrokerFailed("the broker has not been started")
        if self._process is not None and self._process.poll() is not None:
            raise BrokerFailed(self._ending(self._process))
        return self._client

    # --- from start to end ---

    def start(self) -> Barnabas:
        if self.running:
            raise BarnabasError("the broker is running already")
        begun = time.monotonic()
        if self.data is None and self._temporary is None:
            self._temporary = tempfile.mkdtemp(prefix="barnabas-")
        environment = {name: value for name, value in os.environ.items() if name != _TOKEN_VARIABLE}
        control = "0"
        if self._client is not None:  # it comes back where it was
            environment[_TOKEN_VARIABLE] = self._client.token
            control = self._client.url.rpartition(":")[2]
        self._process = subprocess.Popen(
            self._command(control),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=environment,
            process_group=0,  # Ctrl-C is for the tests; they end the broker
        )
        self._watch(self._process)
        try:
            self._await_ready(self._process)
        except BaseException:
            self.stop()
            raise
        self.seconds_to_ready = time.monotonic() - begun
        return self

    def _watch(self, process: subprocess.Popen[bytes]) -> None:
        """See to it that nothing is left behind if nobody stops it."""
        if self._end is not None:
            self._end.detach()
        self._end = weakref.finalize(self, _clean_up, os.getpid(), process, self._temporary)

    def _command(self, control: str) -> list[str]:
        return [
            *(sys.executable, "-P", str(_LAUNCHER), "serve"),
            *("--listen", f"{self._host}:{self._port}"),
            *("--data", str(self.data or self._temporary)),
            *(() if self.data else ("--ephemeral",)),
            *("--control", f"127.0.0.1:{control}"),
            *("--exit-with-parent", str(os.getpid())),
            *(f"--set={name}={value}" for name, value in self.settings.items()),
            *self._arguments,
        ]

    def _await_ready(self, process: subprocess.Popen[bytes]) -> None:
        for line in _lines(process, time.monotonic() + _SECONDS_TO_READY):
            match line.split():
                case ["barnabas", "control", "on", url, "token", token]:
                    self._client = ControlClient(url, token)
                case ["barnabas", "ready", "on", address]:
                    self._port = int(address.rpartition(":")[2])
                    return
        raise BrokerFailed(self._ending(process))

    def _ending(self, process: subprocess.Popen[bytes]) -> str:
        """What became of a process that should be a broker, for people."""
        code = process.poll()
        ended = "is not ready" if code is None else f"ended with {code}"
        lines = self.log.splitlines()[-_LINES_OF_LOG:]
        return f"the broker {ended}. It logged:\n" + ("\n".join(lines) or "(nothing)")

    def stop(self) -> None:
        """Stop it in order. What it had in a temporary folder is gone."""
        process, self._process = self._process, None
        if process is not None and process.poll() is None:
            process.terminate()
        self._ended(process)
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)
            self._temporary = None
        if self._end is not None:
            self._end.detach()
            self._end = None

    def kill(self) -> None:
        """End it as a crash would, with SIGKILL. Its data stays as it is then, for `restart`."""
        process = self._running()
        process.kill()
        self._ended(process)

    def restart(self) -> None:
        """Stop it in order if it is running, and start it again, at the same address and with the same data."""
        if self.running:
            process = self._running()
            self.control.call("POST", "/stop", {"keep_data": True})
            self._ended(process)
        self.start()

    def _ended(self, process: subprocess.Popen[bytes] | None) -> None:
        if process is None:
            return
        try:
            process.wait(_SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            raise BrokerFailed("the broker is not running")
        return self._process

    def __enter__(self) -> Barnabas:
        return self.start()

    def __exit__(self, *exc: object) -> None:
        self.stop()

    async def __aenter__(self) -> Barnabas:
        return await asyncio.to_thread(self.start)

    async def __aexit__(self, *exc: object) -> None:
        await asyncio.to_thread(self.stop)

    # --- what it says ---

    @property
    def log(self) -> str:
        """All that it has logged."""
        return self.log_from(0)

    def log_from(self, position: int) -> str:
        return os.pread(self._log.fileno(), self.log_size - position, position).decode(errors="replace")

    @property
    def log_size(self) -> int:
        return os.fstat(self._log.fileno()).st_size

    @property
    def state(self) -> State:
        """Topics, groups, transactions, producers and connections, as the broker sees them at this moment."""
        state: State = self.control.call("GET", "/state")
        return state

    # --- what a test does with it ---

    @property
    def clock(self) -> Clock:
        return Clock(self.control)

    @property
    def faults(self) -> Faults:
        """What goes wrong: errors, delays, lost answers and the like, for chosen requests."""
        from barnabas.faults import Faults

        return Faults(self.control)

    @property
    def journal(self) -> Journal:
        """Every request and its answer."""
        from barnabas.journal import Journal

        return Journal(self.control)

    @property
    def strict(self) -> Strict:
        """What clients did against the protocol."""
        from barnabas.strict import Strict

        return Strict(self.control)

    def create_topic(
        self,
        name: str | None = None,
        *,
        partitions: int | None = None,
        configs: Mapping[str, object] | None = None,
        **more: object,
    ) -> str:
        """Create a topic, ready to be written to, and give its name. Settings of its own are as the broker's are."""
        made_up = name is None
        while True:
            topic: dict[str, object] = {"name": name or f"topic-{next(self._topics)}"}
            if partitions is not None:
                topic["partitions"] = partitions
            topic["configs"] = setting_texts(configs, more)
            try:
                return str(self.control.call("POST", "/topics", topic)["name"])
            except ControlFailed as failure:
                if not (made_up and str(failure).startswith("TOPIC_ALREADY_EXISTS")):
                    raise

    def delete_topic(self, name: str) -> None:
        from urllib.parse import quote

        self.control.call("DELETE", f"/topics/{quote(name, safe='')}")

    def reset(self) -> None:
        """Empty it: topics, groups, transactions, settings altered at run-time, faults, the clock. Clients stay."""
        self.control.call("POST", "/reset")

    def snapshot(self, name: str | None = None) -> Snapshot:
        """Keep its present state, to be restored any number of times while this broker lives."""
        body = {} if name is None else {"name": name}
        return Snapshot(self.control.call("POST", "/snapshots", body)["name"])

    def restore(self, snapshot: Snapshot | str) -> None:
        """Bring a state back. Clients are disconnected, and find the broker again; groups come back without members."""
        name = snapshot if isinstance(snapshot, str) else snapshot.name
        self.control.call("POST", f"/snapshots/{name}/restore")

    @contextmanager
    def restoring(self) -> Iterator[Snapshot]:
        """Whatever is done within the block is undone at its end."""
        snapshot = self.snapshot()
        try:
            yield snapshot
        finally:
            self.restore(snapshot)
            self.control.call("DELETE", f"/snapshots/{snapshot.name}")


def setting_texts(settings: Mapping[str, object] | None, more: Mapping[str, object]) -> dict[str, str]:
    """Settings as Kafka writes them."""
    both = {**(settings or {}), **{name.replace("_", "."): value for name, value in more.items()}}
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in both.items()}


def _lines(process: subprocess.Popen[bytes], end: float) -> Iterator[str]:
    """What a process prints, line by line, until it ends or the time is over."""
    assert process.stdout is not None
    rest = b""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while selector.select(max(end - time.monotonic(), 0)):
            data = os.read(process.stdout.fileno(), 4096)
            if not data:
                process.wait(_SECONDS_TO_END)
                return
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                yield line.decode()


def _clean_up(owner: int, process: subprocess.Popen[bytes], folder: str | None) -> None:
    """For a broker that nobody stopped, when its handle goes or Python ends; not in a process forked from this one."""
    if os.getpid() != owner:
        return
    if process.poll() is None:
        process.kill()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)
