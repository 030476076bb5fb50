"""`barnabas serve`: run a broker until SIGTERM or Ctrl-C.

When the broker is ready, one line goes to standard output; everything else goes to standard error.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import signal
import sys
from collections.abc import Callable
from contextlib import suppress

import structlog

from broker import logs
from broker.broker import Broker, CannotStart
from broker.clock import SystemClock
from broker.config import BrokerConfig, ConfigError
from broker.server.addresses import host_and_port


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--listen", metavar="HOST:PORT", type=_address, help="where clients connect; port 0 takes a free one"
    )
    parser.add_argument("--data", metavar="DIR", help="where topics and their records are kept")
    parser.add_argument("--config", metavar="FILE", help="a server.properties, with Kafka's names")
    parser.add_argument(
        "--set", metavar="KEY=VALUE", action="append", default=[], help="one more setting, with Kafka's name"
    )


def _address(text: str) -> str:
    _, colon, port = text.rpartition(":")
    if not colon or not port.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form HOST:PORT")
    return text


def run(options: argparse.Namespace) -> int:
    assignments = list(options.set)
    if options.listen:
        assignments.append(f"listeners=PLAINTEXT://{options.listen}")
    if options.data:
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
            runner.run(_serve(config))
    except CannotStart as error:
        print(f"barnabas: {error}", file=sys.stderr)
        return 1
    return 0


async def _serve(config: BrokerConfig) -> None:
    log = structlog.get_logger()
    for warning in config.warnings:
        log.warning(warning)
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(logs.loop_failed)
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        _on_signal(loop, number, stopped.set)
    broker = Broker(config, SystemClock(loop), loop)
    await broker.start()
    try:
        # What is there now stays. The path of a request makes no cycles, so the collector need not look often.
        gc.freeze()
        gc.set_threshold(50_000, 20, 100)
        addresses = [(each.name, host_and_port(each.host, each.port)) for each in broker.server.listeners]
        for name, address in addresses:
            log.info("listening", listener=name, address=address)
        print(f"barnabas ready on {addresses[0][1]}", flush=True)
        await stopped.wait()
    finally:
        await broker.stop()


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
