"""`barnabas serve`: run a broker, or several in one process, until SIGTERM or Ctrl-C.

When all are ready, one line goes to standard output. The log goes to standard error. With --control, a line before the
one that says `ready` says where the control interface is.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import signal
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING, Final

import structlog

from barnabas.broker import logs
from barnabas.broker.broker import Broker
from barnabas.broker.clock import Clock, SystemClock
from barnabas.broker.config import BrokerConfig, ConfigError
from barnabas.broker.config.several import configs_for
from barnabas.broker.local_cluster import LocalCluster
from barnabas.broker.obstacles import CannotStart
from barnabas.broker.server.addresses import host_and_port
from barnabas.command import secure
from barnabas.command.ending import UsageError, complain
from barnabas.command.values import assignment
from barnabas.version import VERSION

if TYPE_CHECKING:  # what only tests need is imported when it is asked for
    from barnabas.broker.console.console import Console
    from barnabas.broker.metrics.metrics import Metrics
    from barnabas.broker.testing.control import Control
    from barnabas.broker.testing.lab import Lab
    from barnabas.broker.testing.serving import EphemeralData
    from barnabas.storage.filesystem import FileSystem

_DEFAULT_ADDRESS = BrokerConfig.listeners.default[0].removeprefix("PLAINTEXT://")
_DEFAULT_DATA = BrokerConfig.log_dir.default[0]


_DEFAULT_CONSOLE: Final = "127.0.0.1:9080"
# They share one core and one event loop: more would only be slower.
_MOST_BROKERS: Final = 32
# After how many new objects young ones are examined, and after how many such times the others.
_GARBAGE_COLLECTION: Final = (3_000, 2, 10_000)
# Records are private: other users may not read what a broker writes.
_NOBODY_ELSE: Final = 0o077


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file",
        metavar="server.properties",
        nargs="?",
        help="a file of settings, as for Kafka's own brokers",
    )
    parser.add_argument(
        "--config",
        metavar="KEY=VALUE",
        type=_setting,
        action="append",
        default=[],
        help="a setting; may be repeated, and overrides the file",
    )
    parser.add_argument(
        "--listen",
        metavar="[NAME://]HOST:PORT",
        type=_addresses,
        default=[],
        help=f"where clients connect; port 0 picks a free one (default: {_DEFAULT_ADDRESS}); several brokers take the "
        "ports after it, or those given as HOST:PORT,PORT,…; SSL://HOST:PORT is a listener with TLS",
    )
    parser.add_argument("--data", metavar="DIR", help=f"where records are kept (default: {_DEFAULT_DATA})")
    parser.add_argument(
        "--brokers",
        metavar="N",
        type=_count,
        default=1,
        help="run a cluster of N brokers in this process, with consecutive ids and ports (default: 1)",
    )
    secure.add_arguments(parser)
    parser.add_argument(
        "--console",
        metavar="HOST:PORT",
        nargs="?",
        type=_console_address,
        const=_console_address(_DEFAULT_CONSOLE),
        help=f"serve a page that shows the broker, and /metrics (default: off; {_DEFAULT_CONSOLE} unless given)",
    )
    parser.add_argument(
        "--console-write",
        action="store_true",
        help="let the console change topics, messages and groups; implied by --control",
    )
    tests = parser.add_argument_group("for tests", "see docs/testing.md")
    tests.add_argument(
        "--control",
        metavar="[HOST:]PORT",
        type=_control_address,
        help="open the control interface (default: closed; HOST is 127.0.0.1 unless given)",
    )
    tests.add_argument("--faults", metavar="FILE", help="start with the faults of a YAML or JSON file")
    tests.add_argument(
        "--journal",
        metavar="FILE",
        nargs="?",
        const="",
        help="keep a journal of all requests (default: off), and also write it to FILE",
    )
    tests.add_argument(
        "--strict", action="store_true", help="report where clients break the rules of the protocol (default: off)"
    )
    tests.add_argument(
        "--ephemeral", action="store_true", help="delete the data at the end; without --data, use a temporary folder"
    )
    tests.add_argument(
        "--exit-with-parent",
        metavar="PID",
        nargs="?",
        type=int,
        const=os.getppid(),
        help="end when the process PID ends (default: the parent process)",
    )
    parser.set_defaults(run=run)


def _setting(text: str) -> str:
    try:
        assignment(text)
    except argparse.ArgumentTypeError as error:
        raise argparse.ArgumentTypeError(
            f"{error}; a properties file needs no option: barnabas serve server.properties"
        ) from None
    return text


def _count(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= _MOST_BROKERS:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to {_MOST_BROKERS}")
    return int(text)


def _addresses(text: str) -> list[str]:
    host, colon, ports = text.rpartition(":")
    if not colon or not all(port.isdigit() for port in ports.split(",")):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form HOST:PORT")
    return [f"{host}:{port}" for port in ports.split(",")]


def _control_address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not _is_port(port):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form [HOST:]PORT, with a port from 0 to 65535")
    return host.strip("[]") or "127.0.0.1", int(port)


def _console_address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not host or not _is_port(port):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form HOST:PORT, with a port from 0 to 65535")
    return host.strip("[]"), int(port)


def _is_port(text: str) -> bool:
    # The event loop takes a larger number modulo 65536.
    return text.isascii() and text.isdigit() and len(text) <= 5 and int(text) <= 65535


def run(options: argparse.Namespace) -> int:
    assignments = list(options.config)
    if len(options.listen) > options.brokers:
        raise UsageError(f"--listen has {len(options.listen)} ports for {options.brokers} broker(s)")
    if options.listen and any(each.partition("=")[0].strip() == "listeners" for each in assignments):
        raise UsageError("--listen and --config listeners=… both say where to listen: give one of them")
    if options.console_write and options.console is None:
        raise UsageError("--console-write needs --console")
    with ExitStack() as ending:
        ending.callback(os.umask, os.umask(_NOBODY_ELSE))
        data = None
        if options.ephemeral:
            from barnabas.broker.testing.serving import EphemeralData, Refused

            try:
                data = EphemeralData(options.data)
            except (Refused, OSError) as error:
                raise UsageError(str(error)) from None
            ending.callback(data.end)
            assignments.append(f"log.dirs={data.folder}")
        elif options.data:
            assignments.append(f"log.dirs={options.data}")
        security = secure.secured(options, options.data or _DEFAULT_DATA if data is None else data.folder)
        protocol = "PLAINTEXT"
        if security is not None:
            protocol = security.protocol
            assignments = [*security.settings, *assignments]
            if security.acls is not None:
                assignments = secure.with_own_super_user(assignments)
            options.listen = options.listen or [_DEFAULT_ADDRESS]
        try:
            listeners = [address if "://" in address else f"{protocol}://{address}" for address in options.listen]
            configs = configs_for(options.brokers, options.file, assignments, listeners)
        except ConfigError as error:
            for problem in str(error).splitlines():
                complain(problem)
            return 2
        logs.configure()
        _allow_many_files()
        try:
            with asyncio.Runner(loop_factory=_loop_factory()) as runner:
                runner.run(_serve(configs, options, data, security))
        except CannotStart as error:
            complain(error)
            return 1
    return 0


async def _serve(
    configs: Sequence[BrokerConfig],
    options: argparse.Namespace,
    data: EphemeralData | None,
    security: secure.Secured | None,
) -> None:
    log = structlog.get_logger()
    for warning in configs[0].warnings:
        log.warning(warning)
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(logs.loop_failed)
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        _on_signal(loop, number, stopped.set)
    if options.exit_with_parent is not None:
        from barnabas.broker.testing.serving import watch_parent

        watch_parent(loop, options.exit_with_parent, stopped.set)
    cluster = _cluster(configs, loop, options)
    await cluster.start()
    control: Control | None = None
    console: Console | None = None
    try:
        if security is not None:
            await secure.add_scram_users(next(cluster.brokers), security.users)
            await secure.add_acls(next(cluster.brokers), security.acls or ())
            for line in security.lines:
                print(line, flush=True)
        lab = _lab(cluster, options)
        metrics = _metrics(cluster, options)
        if options.control is not None:
            lab = lab or _new_lab(cluster)
            control = await _start_control(cluster, options.control, data, stopped, lab, metrics)
        if options.console is not None:
            console = await _start_console(cluster, options, metrics, lab, control)
        # What exists now stays. Requests create no reference cycles, so the garbage collector need not run often. While
        # it runs, the loop waits, so it examines what long requests have allocated a little at a time: 3,000 objects,
        # and 12,000 when it looks a second time at those that are left.
        gc.freeze()
        gc.set_threshold(*_GARBAGE_COLLECTION)
        gc.enable()
        log.info(f"barnabas {VERSION} started", data=_data_directory(configs[0]))
        addresses = [_listening(broker) for broker in cluster.brokers]
        print(f"barnabas ready on {','.join(addresses)}", flush=True)
        await stopped.wait()
    finally:
        if console is not None:
            await console.stop()
        if control is not None:
            await control.stop()
        await cluster.stop()


def _data_directory(config: BrokerConfig) -> str:
    return os.path.abspath(config.data_dirs[0])


def _listening(broker: Broker) -> str:
    """Log where a broker listens. Returns the first address that is for clients."""
    addresses = [(each.name, host_and_port(each.host, each.port)) for each in broker.server.listeners]
    for name, address in addresses:
        structlog.get_logger().info("listening", broker=broker.config.node_id, listener=name, address=address)
    config = broker.config
    own = None if config.inter_broker_listener_name is None else config.inter_broker_listener.name
    return next((address for name, address in addresses if name != own), addresses[0][1])


def _cluster(
    configs: Sequence[BrokerConfig], loop: asyncio.AbstractEventLoop, options: argparse.Namespace
) -> LocalCluster:
    clock: Clock = SystemClock(loop)
    file_system: FileSystem | None = None
    if options.control is not None:
        from barnabas.broker.testing.clock import MovableClock

        clock = MovableClock(loop)
    if options.ephemeral:
        from barnabas.storage.directory_copy import UnsyncedFileSystem

        file_system = UnsyncedFileSystem()
    # Moving the clock must not make connections look idle.
    make_broker = partial(Broker, clock=clock, loop=loop, server_clock=SystemClock(loop), file_system=file_system)
    return LocalCluster(configs, make_broker, clock, loop, durable=not options.ephemeral)


def _lab(cluster: LocalCluster, options: argparse.Namespace) -> Lab | None:
    """Faults, journal and strict mode, if any of them is asked for from the start."""
    if options.faults is None and options.journal is None and not options.strict:
        return None
    from barnabas.broker.testing.faults.script import ScriptError, load
    from barnabas.broker.testing.lab import Lab

    lab = Lab(cluster)
    try:
        if options.journal:
            lab.journal.write_to(open(options.journal, "ab", buffering=0))  # noqa: SIM115, open until the end
        if options.faults is not None:
            lab.faults.add_all(load(options.faults))
    except ScriptError as error:
        raise CannotStart(str(error)) from error
    except OSError as error:
        raise CannotStart(f"{error.filename}: {error.strerror}") from error
    lab.journal.switch(options.journal is not None)
    lab.strict.switch(options.strict)
    return lab


def _metrics(cluster: LocalCluster, options: argparse.Namespace) -> Metrics | None:
    """What counts requests, if anybody can ask for the counts."""
    if options.console is None and options.control is None:
        return None
    from barnabas.broker.metrics.metrics import Metrics

    return Metrics(cluster)


def _new_lab(cluster: LocalCluster) -> Lab:
    from barnabas.broker.testing.lab import Lab

    return Lab(cluster)


async def _start_console(
    cluster: LocalCluster,
    options: argparse.Namespace,
    metrics: Metrics | None,
    lab: Lab | None,
    control: Control | None,
) -> Console:
    """Open the console, and say where it is: with its token, if it has one."""
    try:
        from barnabas.broker.console.serving import start
    except ImportError as error:
        if (error.name or "").startswith("barnabas"):
            raise
        raise CannotStart(
            f"--console needs the package {error.name}: pip install '.[console]' in a clone of Barnabas"
        ) from error
    assert metrics is not None
    lab = lab or _new_lab(cluster)
    writes = options.console_write or control is not None
    try:
        console, url = await start(cluster, metrics, lab, *options.console, writes=writes, control=control)
    except OSError as error:
        raise _cannot_listen("the console", options.console, error) from error
    print(f"barnabas console on {url}", flush=True)
    return console


async def _start_control(
    cluster: LocalCluster,
    address: tuple[str, int],
    data: EphemeralData | None,
    stopped: asyncio.Event,
    lab: Lab | None,
    metrics: Metrics | None,
) -> Control:
    """Open the control interface, and say where it is, with its token if that was generated."""
    from barnabas.broker.testing.control import Control
    from barnabas.broker.testing.serving import Refused, control_token

    def stop(keep_data: bool) -> None:
        if data is not None:
            data.kept = keep_data
        stopped.set()

    try:
        token, told = control_token(address[0])
        control = Control(cluster, token, stop, lab, metrics)
        found = host_and_port(*await control.start(*address))
    except Refused as error:
        raise CannotStart(str(error)) from None
    except OSError as error:
        raise _cannot_listen("control", address, error) from error
    print(f"barnabas control on http://{found}" + (f" token {token}" if told else ""), flush=True)
    return control


def _cannot_listen(what: str, address: tuple[str, int], error: OSError) -> CannotStart:
    # asyncio puts the address into the text of some errors; a host without an address has no errno but a negative one.
    number = error.errno or 0
    reason = os.strerror(number) if number > 0 else error.strerror or error
    return CannotStart(f"cannot listen for {what}: {host_and_port(*address)}: {reason}")


def _allow_many_files() -> None:
    """Each connection and each segment is an open file. The default limit of a shell is too low for that."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):  # the real limit of macOS is lower than the one it reports
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _on_signal(loop: asyncio.AbstractEventLoop, number: signal.Signals, callback: Callable[[], None]) -> None:
    try:
        loop.add_signal_handler(number, callback)
    except NotImplementedError:  # the loop has no signals on Windows
        signal.signal(number, lambda *_: loop.call_soon_threadsafe(callback))


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    try:
        import uvloop
    except ImportError:
        # Connections use add_reader, which only the selector loop has on every platform.
        return asyncio.SelectorEventLoop
    return uvloop.new_event_loop
