"""A process of clients of one library: python -m tests.integration.cluster.torture.client TASK-AS-JSON

Each role (see seat.Task) has a thread. A client that fails is replaced by a new one, as an application would do; a
library that hangs ends the process, and the parent starts it again. On SIGTERM producers finish, and `finished` is
printed when they have. Consumers continue until the process is killed.
"""

from __future__ import annotations

import faulthandler
import importlib
import json
import logging
import os
import signal
import sys
import threading
import time

from tests.integration.cluster.torture.seat import Journal, Play, Seat, Task

MODULES = {"kafka-python": "kafka_python", "confluent-kafka": "confluent", "aiokafka": "aio_kafka"}


class Chair:
    """A role, and the clients that play it one after another."""

    def __init__(self, task: Task, journal: Journal, number: int, role: str, play: Play, over: threading.Event) -> None:
        self._task = task
        self._journal = journal
        self._number = number
        self.role = role
        self._play = play
        self._is_over = over
        self._seat: Seat | None = None
        self.thread = threading.Thread(target=self._run, name=f"{role}-{number}", daemon=True)
        self.thread.start()

    def _run(self) -> None:
        lives = 0
        while lives == 0 or not self._is_over.is_set():
            name = f"{self._task.library}/{self.role}-{self._number}/{self._task.life}.{lives}"
            self._seat = Seat(self._task, self._journal, self.role, name, self._is_over)
            try:
                self._play(self._seat)
            except Exception as error:
                print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
                time.sleep(0.5)
            lives += 1

    @property
    def hangs(self) -> bool:
        seat = self._seat
        return (
            self.thread.is_alive() and seat is not None and time.monotonic() > seat.last_sign + self._task.hangs_after
        )


def main(given: str) -> None:
    task = Task(**json.loads(given))
    logging.disable()  # libraries log at length about a broker that is away
    faulthandler.register(signal.SIGUSR1)
    plays: dict[str, Play] = importlib.import_module(f"tests.integration.cluster.torture.{MODULES[task.library]}").PLAYS
    journal = Journal(task.journal)
    sending, reading = threading.Event(), threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: sending.set())
    chairs = [
        Chair(task, journal, number, role, plays[role], reading if role == "member" else sending)
        for number, role in enumerate(task.roles)
    ]
    producers_finished = False
    while True:
        time.sleep(0.1)
        for chair in chairs:
            if chair.hangs:
                print(f"{task.library}/{chair.role} gave no sign of life for {task.hangs_after} s", file=sys.stderr)
                faulthandler.dump_traceback()
                os._exit(3)
        if not producers_finished and not any(each.thread.is_alive() for each in chairs if each.role != "member"):
            producers_finished = True
            print("finished", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
