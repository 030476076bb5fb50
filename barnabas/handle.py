"""A broker as an object that a test starts, inspects, resets, crashes and stops."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import selectors
import shutil
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple

from barnabas.clock import Clock
from barnabas.control import ControlClient
from barnabas.errors import BarnabasError, BrokerFailed, ControlFailed

if TYPE_CHECKING:
    from barnabas.faults import Faults
    from barnabas.journal import Journal
    from barnabas.metrics import Metrics
    from barnabas.nodes import Nodes
    from barnabas.state import State
    from barnabas.strict import Strict

__tracebackhide__ = True  # pytest shows the line of the test instead

_TOKEN_VARIABLE: Final = "BARNABAS_CONTROL_TOKEN"
_EVERY_ADDRESS: Final = ("", "0.0.0.0", "::", "[::]")
_SECONDS_TO_READY: Final = 60.0
_SECONDS_TO_END: Final = 30.0
_LINES_OF_LOG: Final = 100


class Snapshot(NamedTuple):
    """A saved state of the broker."""

    name: str


class Barnabas:
    """A broker in a process of its own, or a cluster of several, on free ports of the loopback interface.

        with Barnabas(num_partitions=3) as broker:
            producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)

        with Barnabas(brokers=3) as cluster:
            cluster.nodes[2].kill()

    Settings use Kafka's names, as a mapping or as keywords with underscores for dots. The broker is ready when the
    block begins. It ends with the block or with this process, however that ends. Its data is in a temporary folder
    that is removed at the end, unless `data` names a folder. `async with` works too and does not block the event loop.
    """

    def __init__(
        self,
        settings: Mapping[str, object] | None = None,
        *,
        brokers: int = 1,
        host: str = "127.0.0.1",
        port: int = 0,
        data: str | os.PathLike[str] | None = None,
        journal: bool = True,
        strict: bool = False,
        security: str | None = None,
        users: Mapping[str, str] | None = None,
        acls: Sequence[Mapping[str, object]] | None = None,
        arguments: tuple[str, ...] = (),
        **more: object,
    ) -> None:
        """`brokers` is how many brokers the cluster has; with a `port`, they listen on that one and those after it.

        `security` is "ssl", "sasl_plaintext" or "sasl_ssl", and `users` are those who may log in, with their passwords.
        `client_settings` says how clients get in. With `acls`, users may do only what these rules allow, as in
        `{"user": "alice", "allow": ["read", "write"], "topic": "orders"}`; the setting `super_users` names others.

        `journal` and `strict` are on from the start if set; `arguments` are extra arguments for `barnabas serve`.
        """
        self.settings = setting_texts(settings, more)
        self.data = None if data is None else Path(data)
        self._security = (security or "plaintext").upper()
        if users is None and self._security.startswith("SASL"):
            users = {"admin": secrets.token_urlsafe(12)}
        self.users = dict(users or {})
        if acls is not None and not self._security.startswith("SASL"):
            raise BarnabasError('acls are about users: they need security="sasl_plaintext" or "sasl_ssl"')
        self._acls = None if acls is None else [dict(rule) for rule in acls]
        self._secrets: str | None = None  # a folder
        self._certificates: str | None = None  # a folder
        self._host = host
        self._brokers = brokers
        self._port = port
        self._ports: tuple[int, ...] = ()
        self._arguments = (
            *(("--brokers", str(brokers)) if brokers != 1 else ()),
            *(("--journal",) if journal else ()),
            *(("--strict",) if strict else ()),
            *arguments,
        )
        self.console_url: str | None = None  # with `--console` among the arguments
        self._process: subprocess.Popen[bytes] | None = None
        self._client: ControlClient | None = None
        self._temporary: str | None = None
        self._log: IO[bytes] = tempfile.TemporaryFile(prefix="barnabas-log-")  # noqa: SIM115, stays open for the life of this object
        self._end: weakref.finalize[Any, Barnabas] | None = None
        self._topics = count(1)
        self.journal_since = 0  # the default start of `journal`; the pytest plugin sets it for each test
        self.seconds_to_ready = 0.0

    def __repr__(self) -> str:
        if not self._port:
            return "<Barnabas, not started>"
        return f"<Barnabas {self.bootstrap_servers}{'' if self.running else ', not running'}>"

    # --- addresses ---

    @property
    def bootstrap_servers(self) -> str:
        """HOST:PORT, for clients on this machine; of several brokers all, separated by commas."""
        host = "127.0.0.1" if self._host in _EVERY_ADDRESS else self._host
        if ":" in host and not host.startswith("["):
            host = f"[{host}]"
        return ",".join(f"{host}:{port}" for port in self._ports or (self.port,))

    def client_settings(self, library: str, user: str | None = None, *, mechanism: str | None = None) -> dict[str, Any]:
        """The settings with which to create a client of a library: "confluent", "kafka-python", "aiokafka" or "java".

        `user` is one of `users`, the first one unless given; `mechanism` is SCRAM-SHA-256 unless given.
        """
        from barnabas.client_settings import DEFAULT_MECHANISM, Access, client_settings

        name = password = None
        if self._security.startswith("SASL"):
            name = next(iter(self.users)) if user is None else user
            if name not in self.users:
                raise BarnabasError(f"there is no user {name!r}, only {', '.join(self.users)}")
            password = self.users[name]
        elif user is not None:
            raise BarnabasError(f"a broker with {self._security} has no users")
        folder = None if self._certificates is None else Path(self._certificates)
        access = Access(
            self.bootstrap_servers,
            self._security,
            ca=None if folder is None else str(folder / "ca.pem"),
            user=name,
            password=password,
            mechanism=mechanism or DEFAULT_MECHANISM,
            certificate=str(folder / "client.pem") if folder is not None and self._security == "SSL" else None,
        )
        return client_settings(library, access)

    @property
    def port(self) -> int:
        """The port of the first broker."""
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
        """The control interface, for anything that has no method here."""
        if self._client is None:
            raise BrokerFailed("the broker has not been started")
        if self._process is None:
            raise BrokerFailed("the broker has been stopped")
        if self._process.poll() is not None:
            raise BrokerFailed(self._ending(self._process))
        return self._client

    # --- start and stop ---

    def start(self) -> Barnabas:
        if self.running:
            raise BarnabasError("the broker is already running")
        started_at = time.monotonic()
        if self.data is None and self._temporary is None:
            self._temporary = tempfile.mkdtemp(prefix="barnabas-")
        if self.users and self._secrets is None:
            self._secrets = tempfile.mkdtemp(prefix="barnabas-users-")  # for its owner only, unlike a command line
            Path(self._secrets, "users.json").write_text(json.dumps(self.users))
            if self._acls is not None:
                Path(self._secrets, "acls.json").write_text(json.dumps(self._acls))
        environment = {name: value for name, value in os.environ.items() if name != _TOKEN_VARIABLE}
        control = "0"
        if self._client is not None:  # restart at the same address
            environment[_TOKEN_VARIABLE] = self._client.token
            control = self._client.url.rpartition(":")[2]
        self._process = subprocess.Popen(
            self._command(control),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=environment,
            process_group=0,  # keep Ctrl-C for the tests; they stop the broker
        )
        self._watch(self._process)
        try:
            self._await_ready(self._process)
        except BaseException:
            self.stop()
            raise
        self.journal_since = 0
        self.seconds_to_ready = time.monotonic() - started_at
        return self

    def _watch(self, process: subprocess.Popen[bytes]) -> None:
        """Make sure that nothing is left behind if nobody stops the broker."""
        if self._end is not None:
            self._end.detach()
        folders = (self._temporary, self._secrets)
        self._end = weakref.finalize(self, _clean_up, os.getpid(), process, folders)

    def _command(self, control: str) -> list[str]:
        return [
            *(sys.executable, "-P", "-m", "barnabas", "serve"),
            *("--listen", f"{self._host}:{','.join(map(str, self._ports or (self._port,)))}"),
            *("--data", str(self.data or self._temporary)),
            *(() if self.data else ("--ephemeral",)),
            *("--control", f"127.0.0.1:{control}"),
            *("--exit-with-parent", str(os.getpid())),
            *(() if self._security == "PLAINTEXT" else ("--secure", self._security)),
            *(("--users", os.path.join(self._secrets, "users.json")) if self._secrets is not None else ()),
            *(("--acls", os.path.join(self._secrets or "", "acls.json")) if self._acls is not None else ()),
            *(f"--config={name}={value}" for name, value in self.settings.items()),
            *self._arguments,
        ]

    def _await_ready(self, process: subprocess.Popen[bytes]) -> None:
        for line in _lines(process, time.monotonic() + _SECONDS_TO_READY):
            match line.split():
                case ["barnabas", "control", "on", url, "token", token]:
                    self._client = ControlClient(url, token)
                case ["barnabas", "console", "on", url]:
                    self.console_url = url
                case ["barnabas", "certificates", "in", *folder]:
                    self._certificates = " ".join(folder)
                case ["barnabas", "ready", "on", addresses]:
                    self._ports = tuple(int(address.rpartition(":")[2]) for address in addresses.split(","))
                    self._port = self._ports[0]
                    return
        raise BrokerFailed(self._ending(process))

    def _ending(self, process: subprocess.Popen[bytes]) -> str:
        """Describe what happened to the broker's process, for an error message."""
        code = process.poll()
        ended = "is not ready" if code is None else f"ended with {code}"
        lines = self.log.splitlines()[-_LINES_OF_LOG:]
        return f"the broker {ended}. It logged:\n" + ("\n".join(lines) or "(nothing)")

    def stop(self) -> None:
        """Shut the broker down. Data in a temporary folder is removed."""
        process, self._process = self._process, None
        if process is not None and process.poll() is None:
            process.terminate()
        self._ended(process)
        for folder in filter(None, (self._temporary, self._secrets)):
            shutil.rmtree(folder, ignore_errors=True)
        self._temporary = self._secrets = None
        if self._end is not None:
            self._end.detach()
            self._end = None

    def kill(self) -> None:
        """Kill the broker with SIGKILL, like a crash. Its data stays as it was at that moment, for `restart`."""
        process = self._running()
        process.kill()
        self._ended(process)

    def restart(self) -> None:
        """Shut the broker down if it is running, and start it again at the same address with the same data."""
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

    # --- log and state ---

    @property
    def log(self) -> str:
        """Everything that the broker has logged."""
        return self.log_from(0)

    def log_from(self, position: int) -> str:
        return os.pread(self._log.fileno(), self.log_size - position, position).decode(errors="replace")

    @property
    def log_size(self) -> int:
        return os.fstat(self._log.fileno()).st_size

    @property
    def state(self) -> State:
        """Topics, groups, transactions, producers and connections, as the broker sees them now."""
        state: State = self.control.call("GET", "/state")
        return state

    @property
    def metrics(self) -> Metrics:
        """What `/metrics` would report now, under the same names."""
        from barnabas.metrics import Metrics

        return Metrics(self.control.call("GET", "/metrics"))

    # --- control ---

    @property
    def clock(self) -> Clock:
        return Clock(self.control)

    @property
    def faults(self) -> Faults:
        """Errors, delays, lost responses and other faults for chosen requests."""
        from barnabas.faults import Faults

        return Faults(self.control)

    @property
    def journal(self) -> Journal:
        """Every request and its response."""
        from barnabas.journal import Journal

        return Journal(self.control, lambda: self.journal_since)

    @property
    def strict(self) -> Strict:
        """Protocol violations by clients."""
        from barnabas.strict import Strict

        return Strict(self.control)

    # --- the brokers of a cluster ---

    @property
    def nodes(self) -> Nodes:
        """The brokers by their ids; a single broker is a cluster of one."""
        from barnabas.nodes import Nodes

        return Nodes(self.control)

    def move_leader(self, topic: str, partition: int, to: int) -> None:
        """Let another broker lead a partition: one of its in-sync replicas."""
        from urllib.parse import quote

        path = f"/topics/{quote(topic, safe='')}/partitions/{partition}/leader"
        self.control.call("POST", path, {"broker": to})

    def change_controller(self, to: int | None = None) -> int:
        """Let another broker become the controller, this one or any. Returns its id."""
        return int(self.control.call("POST", "/controller", {} if to is None else {"broker": to})["controller"])

    # --- topics and data ---

    def create_topic(
        self,
        name: str | None = None,
        *,
        partitions: int | None = None,
        replication_factor: int | None = None,
        configs: Mapping[str, object] | None = None,
        **more: object,
    ) -> str:
        """Create a topic, ready for use, and return its name. Settings are passed as for the broker."""
        made_up = name is None
        while True:
            topic: dict[str, object] = {"name": name or f"topic-{next(self._topics)}"}
            if partitions is not None:
                topic["partitions"] = partitions
            if replication_factor is not None:
                topic["replication_factor"] = replication_factor
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
        """Reset topics, groups, transactions, altered settings, faults and the clock. Clients stay connected."""
        self.control.call("POST", "/reset")

    def snapshot(self, name: str | None = None) -> Snapshot:
        """Save the current state. It can be restored any number of times while this broker lives."""
        body = {} if name is None else {"name": name}
        return Snapshot(self.control.call("POST", "/snapshots", body)["name"])

    def restore(self, snapshot: Snapshot | str) -> None:
        """Restore a state. Clients are disconnected and reconnect; groups come back without members."""
        name = snapshot if isinstance(snapshot, str) else snapshot.name
        self.control.call("POST", f"/snapshots/{name}/restore")

    @contextmanager
    def restoring(self) -> Iterator[Snapshot]:
        """Restore the current state at the end of the block."""
        snapshot = self.snapshot()
        try:
            yield snapshot
        finally:
            self.restore(snapshot)
            self.control.call("DELETE", f"/snapshots/{snapshot.name}")


def setting_texts(settings: Mapping[str, object] | None, more: Mapping[str, object]) -> dict[str, str]:
    """Settings in Kafka's notation."""
    both = {**(settings or {}), **{name.replace("_", "."): value for name, value in more.items()}}
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in both.items()}


def _lines(process: subprocess.Popen[bytes], end: float) -> Iterator[str]:
    """Yield the lines that a process prints, until it ends or the time is up."""
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


def _clean_up(owner: int, process: subprocess.Popen[bytes], folders: tuple[str | None, ...]) -> None:
    """Clean up a broker that nobody stopped, when its handle is collected or Python exits; not in a forked process."""
    if os.getpid() != owner:
        return
    if process.poll() is None:
        process.kill()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()
    for folder in filter(None, folders):
        shutil.rmtree(folder, ignore_errors=True)
