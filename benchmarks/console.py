"""What an open page costs the broker at 10,000 messages per second: the overview, or a live tail.

A producer sends all the time, and a page is open or not, in turn, so that other load on the machine affects all alike.
What counts is the broker's own CPU time.
"""

from __future__ import annotations

import json
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlencode
from urllib.request import urlopen

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas import Barnabas

TOPIC, PARTITIONS = "orders", 3
PER_SECOND = 10_000
# What a page asks for; the overview is at the top of every page.
_OVERVIEW = {"": {"view": "overview"}}
PAGES = {
    "no page": [],
    "no page, once more": [],
    "overview": ["live?" + urlencode({"watch": json.dumps({**_OVERVIEW, "t": {"view": "topics"}})})],
    "live tail": ["live?" + urlencode({"watch": json.dumps(_OVERVIEW)}), "tail?" + urlencode({"topic": TOPIC})],
}


def main(quick: bool = False) -> None:
    rounds, seconds = (8, 1.5) if quick else (20, 1.5)
    with Barnabas(arguments=("--console", "127.0.0.1:0"), journal=False) as broker, _messages(broker.bootstrap_servers):
        busy = _compare(broker, rounds, seconds)
    print(f"{PER_SECOND:,} messages per second; {rounds} rounds in turn; the broker's share of a core")
    first = _usual(busy["no page"])
    for page, shares in busy.items():
        share = _usual(shares)
        print(f"  {page:20} {share:6.2%} ({share - first:+.2%})")


def _compare(broker: Barnabas, rounds: int, seconds: float) -> dict[str, list[float]]:
    api = f"{broker.console_url}api/"
    busy: dict[str, list[float]] = {page: [] for page in PAGES}
    for number in range(rounds + 1):
        for page, asked in PAGES.items():
            with ExitStack() as streams:
                for path in asked:
                    streams.enter_context(_open(api + path))
                began, started = time.monotonic(), _cpu_seconds(broker.pid)
                time.sleep(seconds)
                used = _cpu_seconds(broker.pid) - started
                if number:  # the first round warms up
                    busy[page].append(used / (time.monotonic() - began))
    return busy


def _usual(shares: list[float]) -> float:
    """The lower quartile: other load on the machine only ever adds."""
    return statistics.quantiles(shares, n=4)[0]


def _cpu_seconds(pid: int) -> float:
    """To the nanosecond, unlike what /proc/PID/stat has: the differences are small."""
    tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(task.read_text(encoding="ascii").split()[0]) for task in tasks) / 1e9


@contextmanager
def _open(url: str) -> Iterator[None]:
    """Read server-sent events, as a page does."""
    over = threading.Event()

    def read() -> None:
        with urlopen(url) as events:
            for _ in events:
                if over.is_set():
                    return

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        yield
    finally:
        over.set()
        reader.join(30)


@contextmanager
def _messages(bootstrap: str) -> Iterator[None]:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for created in admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)]).values():
        created.result(30)
    over = threading.Event()
    sender = threading.Thread(target=_send, args=(bootstrap, over), daemon=True)
    sender.start()
    try:
        yield
    finally:
        over.set()
        sender.join(30)


def _send(bootstrap: str, over: threading.Event) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
    value = json.dumps({"id": 1234567, "customer": "K.", "items": [{"sku": "A-17", "amount": 3}]})
    began, sent = time.monotonic(), 0
    while not over.is_set():
        due = int((time.monotonic() - began) * PER_SECOND)
        for _ in range(due - sent):
            producer.produce(TOPIC, value, key="customer-7", partition=sent % PARTITIONS)
            sent += 1
        producer.poll(0.005)
    producer.flush(30)


if __name__ == "__main__":
    main(quick=True)
