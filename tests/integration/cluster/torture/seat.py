"""A client library under torture: what it has to do, and where it records what it did."""

from __future__ import annotations

import json
import os
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

SECONDS_BETWEEN_SENDS = 0.1
PATIENCE = 30.0
DELIVERY_MS = 120_000
TRANSACTION_TIMEOUT_MS = 10_000
SESSION_TIMEOUT_MS = 6_000
HEARTBEAT_INTERVAL_MS = 1_000
AT_ONCE = 50
SHARE_OF_ABORTS = 0.2


@dataclass(frozen=True)
class Task:
    """What a process of clients has to do. It is passed as JSON."""

    library: str
    life: int  # how often this library was started before
    bootstrap: str
    topic: str
    partitions: int
    journal: str  # a file
    seed: int
    acks: str = "all"
    roles: tuple[str, ...] = ("plain", "idempotent", "transactional", "member", "member")

    @property
    def hangs_after(self) -> float:
        """After how many seconds without a sign of life a library is killed.

        kafka-python 3.0.12 waits forever, in every other run, when the transaction coordinator that it knows refuses a
        connection: its Sender forgets the request that it was about to send (_maybe_send_pending_request leaves
        target_node set, so that the request is not queued again). Nothing is learnt from waiting for it longer than a
        call may take.
        """
        return PATIENCE + 15 if self.library == "kafka-python" else 3 * PATIENCE

    @property
    def group(self) -> str:
        return f"group-{self.library}"


class Journal:
    """Lines of JSON, see tests/support/history.py. A line is one write, so that it is whole or absent."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def note(self, who: str, what: str, **fields: Any) -> None:
        line = json.dumps({"at": time.monotonic(), "who": who, "what": what, **fields})
        os.write(self._file, f"{line}\n".encode())


class Seat:
    """One run of one client. Everything that it does is recorded beforehand, and the outcome afterwards."""

    def __init__(self, task: Task, journal: Journal, role: str, name: str, is_over: threading.Event) -> None:
        self.task = task
        self.role = role
        self.who = name
        self.chance = random.Random(f"{task.seed} {name}")
        self.last_sign = time.monotonic()
        self._journal = journal
        self._is_over = is_over
        self._sends = 0
        self._transactions = 0
        self._transaction = ""
        group = {"group": task.group} if role == "member" else {}
        self._note("opened", kind=role, **group)

    def _note(self, what: str, **fields: Any) -> None:
        self._journal.note(self.who, what, **fields)

    @property
    def goes_on(self) -> bool:
        """Asked once in every turn of a loop, and taken as a sign of life."""
        self.last_sign = time.monotonic()
        return not self._is_over.is_set()

    def partition(self) -> int:
        return self.chance.randrange(self.task.partitions)

    # --- producers ---

    def send(self, partition: int) -> bytes:
        """The next value, about to be sent there."""
        value = f"{self.who}:{self._sends}"
        self._sends += 1
        within = {"transaction": self._transaction} if self._transaction else {}
        self._note("send", partition=partition, value=value, **within)
        return value.encode()

    def sent(self, value: bytes, offset: int | None) -> None:
        self._note("sent", value=value.decode(), offset=-1 if offset is None else offset)

    def begin(self) -> None:
        self._transaction = f"{self.who}#{self._transactions}"
        self._transactions += 1

    def aborts_this_time(self) -> bool:
        return self.chance.random() < SHARE_OF_ABORTS

    def commit(self) -> None:
        self._note("commit", transaction=self._transaction)

    def committed(self) -> None:
        self._note("committed", transaction=self._transaction)

    def aborted(self) -> None:
        self._note("aborted", transaction=self._transaction)

    # --- consumers ---

    def assigned(self) -> None:
        self._note("assigned")

    def read(self, partition: int, offset: int, value: bytes) -> None:
        self._note("read", partition=partition, offset=offset, value=value.decode())

    def offset_committed(self, partition: int, offset: int) -> None:
        self._note("offset committed", partition=partition, offset=offset)


Play = Callable[[Seat], None]
