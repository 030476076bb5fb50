"""`barnabas serve`: run a broker until SIGTERM or Ctrl-C.

When the broker is ready, one line goes to standard output; everything else goes to standard error. With --control a
line before it says where the control interface is.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import signal
import sys
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

import structlog

from broker import logs
from broker.broker import Broker, CannotStart
from broker.clock import Clock, SystemClock
from broker.config import BrokerConfig, ConfigError
from broker.server.addresses import host_and_port

if TYPE_CHECKING:  # what is for tests costs nothing unless it is asked for
    from broker.testing.control import Control
    from broker.testing.lab import Lab
    from broker.testing.serving import EphemeralData


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--listen", metavar="HOST:PORT", type=_address, help="where clients connect; port 0 takes a free one"
    )
    parser.add_argument("--data", metavar="DIR", help="where topics and their records are kept")
    parser.add_argument("--config", metavar="FILE", help="a server.properties, with Kafka's names")
    parser.add_argument(
        "--set", metavar="KEY=VALUE", action="append", default=[], help="one more setting, with Kafka's name"
    )
    tests = parser.add_argument_group("for tests", "see TESTING.md")
    tests.add_argument(
        "--control",
        metavar="[HOST:]PORT",
        type=_control_address,
        help="open the control interface",
    )
    tests.add_argument("--faults", metavar="FILE", help="faults from a YAML or JSON file, from the start")
    tests.add_argument(
        "--journal", metavar="FILE", nargs="?", const="", help="keep a journal of all requests, and write it to FILE"
    )
    tests.add_argument("--strict", action="store_true", help="report what clients do against the protocol")
    tests.add_argument(
        "--ephemeral", action="store_true", help="remove the data at the end; without --data, it is in a new folder"
    )
    tests.add_argument(
        "--exit-with-parent", metavar="PID", nargs="?", type=int, const=os.getppid(), help="end when the parent ends"
    )


def _address(text: str) -> str:
    _, colon, port = text.rpartition(":")
    if not colon or not port.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form HOST:PORT")
    return text


def _control_address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not port.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form [HOST:]PORT")
    return host or "127.0.0.1", int(port)


def run(options: argparse.Namespace) -> int:
    assignments = list(options.set)
    if options.listen:
        assignments.append(f"listeners=PLAINTEXT://{options.listen}")
    with ExitStack() as ending:
        data = None
        if options.ephemeral:
            from broker.testing.serving import EphemeralData, Refused

            try:
                data = EphemeralData(options.data)
            except (Refused, OSError) as error:
                print(f"barnabas: {error}", file=sys.stderr)
                return 2
            ending.callback(data.end)
            assignments.append(f"log.dirs={data.folder}")
        elif options.data:
            assignments.append(f"log.dirs={options.data}")
        try:
            config = BrokerConfig.load(options.config, assignments)
        except ConfigError as error:
            for problem in str(error).splitlines():
                print(f"barnabas: {problem}", file=sys.stderr)
            return 2
        logs.configure()
        _allow_many_files()
        try:
            with asyncio.Runner(loop_factory=_loop_factory()) as runner:
                runner.run(_serve(config, options, data))
        except CannotStart as error:
            print(f"barnabas: {error}", file=sys.stderr)
            return 1
    return 0


async def _serve(config: BrokerConfig, options: argparse.Namespace, data: EphemeralData | None) -> None:
    log = structlog.get_logger()
    for warning in config.warnings:
        log.warning(warning)
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(logs.loop_failed)
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        _on_signal(loop, number, stopped.set)
    if options.exit_with_parent is not None:
        from broker.testing.serving import watch_parent

        watch_parent(loop, options.exit_with_parent, stopped.set)
    broker = _broker(config, loop, options)
    await broker.start()
    control: Control | None = None
    try:
        lab = _lab(broker, options)
        if options.control is not None:
            control = await _start_control(broker, options.control, data, stopped, lab)
        # What is there now stays. The path of a request makes no cycles, so the collector need not look often.
        gc.freeze()
        gc.set_threshold(50_000, 20, 100)
        addresses = [(each.name, host_and_port(each.host, each.port)) for each in broker.server.listeners]
        for name, address in addresses:
            log.info("listening", listener=name, address=address)
        print(f"barnabas ready on {addresses[0][1]}", flush=True)
        await stopped.wait()
    finally:
        if control is not None:
            await control.stop()
        await broker.stop()


def _broker(config: BrokerConfig, loop: asyncio.AbstractEventLoop, options: argparse.Namespace) -> Broker:
    clock: Clock = SystemClock(loop)
    file_system = None
    if options.control is not None:
        from broker.testing.clock import MovableClock

        clock = MovableClock(loop)
    if options.ephemeral:
        from storage.directory_copy import UnsyncedFileSystem

        file_system = UnsyncedFileSystem()
    # Who is connected has not been idle just because the clock was moved.
    return Broker(
        config,
        clock,
        loop,
        server_clock=SystemClock(loop),
        file_system=file_system,
        durable=not options.ephemeral,
    )


def _lab(broker: Broker, options: argparse.Namespace) -> Lab | None:
    """Faults, journal and strict mode, as far as they are asked for from the start."""
    if options.faults is None and options.journal is None and not options.strict:
        return None
    from broker.testing.faults.script import ScriptError, load
    from broker.testing.lab import Lab

    lab = Lab(broker)
    try:
        if options.journal:
            lab.journal.write_to(open(options.journal, "ab", buffering=0))  # noqa: SIM115, it is open to the end
        if options.faults is not None:
            lab.faults.add_all(load(options.faults))
    except (ScriptError, OSError) as error:
        raise CannotStart(str(error)) from error
    lab.journal.switch(options.journal is not None)
    lab.strict.switch(options.strict)
    return lab


async def _start_control(
    broker: Broker, address: tuple[str, int], data: EphemeralData | None, stopped: asyncio.Event, lab: Lab | None
) -> Control:
    """Open the control interface, and say where it is; if its token was made up, that too."""
    from broker.testing.control import Control
    from broker.testing.serving import Refused, control_token

    def stop(keep_data: bool) -> None:
        if data is not None:
            data.kept = keep_data
        stopped.set()

    try:
        token, told = control_token(address[0])
        control = Control(broker, token, stop, lab)
        found = host_and_port(*await control.start(*address))
    except Refused as error:
        raise CannotStart(str(error)) from None
    except OSError as error:
        raise CannotStart(f"cannot listen for control: {error}") from error
    print(f"barnabas control on http://{found}" + (f" token {token}" if told else ""), flush=True)
    return control


def _allow_many_files() -> None:
    """Each connection and each segment is an open file, and what a shell allows by default is soon used up."""
    try:
        import resource
    except ImportError:  # Windows, which has no such limit
        return
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):  # macOS has a lower limit than it says
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _on_signal(loop: asyncio.AbstractEventLoop, number: signal.Signals, callback: Callable[[], None]) -> None:
    try:
        loop.add_signal_handler(number, callback)
    except NotImplementedError:  # a loop without signals, on Windows
        signal.signal(number, lambda *_: loop.call_soon_threadsafe(callback))


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    try:
        import uvloop
    except ImportError:
        # Connections wait for their sockets through add_reader, which only the selector loop has everywhere.
        return asyncio.SelectorEventLoop
    return uvloop.new_event_loop
