"""The `barnabas` command in a process of its own, for what needs signals, pipes or terminals; and its tables."""

import re
import signal
import subprocess
import sys
from contextlib import contextmanager

from tests.support.apache_kafka import run_tool


@contextmanager
def started(served, *arguments, **streams):
    """A command in a process of its own, which is gone afterwards."""
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams}
    process = subprocess.Popen(
        [sys.executable, "-m", "barnabas", *arguments, "--bootstrap", served.bootstrap], text=True, **streams
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()


def ended(process, number=signal.SIGINT):
    """Stop a process as a user does; returns its status and the rest of what it said."""
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


def columns(table):
    """A table's rows, each as a dictionary by title."""
    titles, *rows = [line.split() for line in table.splitlines()]
    return [dict(zip(titles, row, strict=True)) for row in rows]


def partitions_read(process):
    """The partitions in the next line that tells what a `consume -v` reads."""
    line = process.stderr.readline()
    assert line.startswith("barnabas: reading "), line
    return [int(number) for number in re.findall(r"-(\d+) from", line)]


def rows(table):
    """A table's rows, whatever their order and the width of their columns."""
    return sorted(line.split() for line in table.splitlines()[1:])


def kafkas_description(bootstrap, group, *options):
    """The table that Kafka's own tool prints of a group."""
    tool = ("kafka-consumer-groups", "--bootstrap-server", bootstrap, "--describe", "--group", group, *options)
    return run_tool(*tool).stdout.strip()
