"""A run of the fuzzer: frames of a seed, and whether the broker came through unharmed."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from barnabas.client.wire import Wire
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from barnabas.protocol.schema import Versions
from tests.fuzz.attacker import Attacker
from tests.fuzz.broker import BrokerUnderTest
from tests.fuzz.frames import Frame, Frames, frame_line, summary
from tests.fuzz.turns import LONG
from tests.fuzz.witness import Witness
from tests.fuzz.world import World

_LOOK_EVERY = 50  # frames
_REMEMBERED = 60  # frames before the one that caused a problem


@dataclass
class Bounds:
    """What makes a run fail besides tracebacks and lost records; None means that it is only reported."""

    turn_seconds: float | None = None
    memory_mb: int | None = None


@dataclass
class Report:
    seed: int
    frames: int = 0
    answered: int = 0
    closed: int = 0
    acknowledged: int = 0
    seconds: float = 0.0
    longest_turn: float = 0.0
    longest_turn_after: str = ""
    longest_wait: float = 0.0
    longest_wait_after: str = ""
    memory_mb: int = 0
    latest_frames: str = ""  # before the first problem
    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [
            *([f"the latest frames:\n{self.latest_frames}"] if self.problems else []),
            f"seed {self.seed}: {self.frames} frames in {self.seconds:.0f} s; "
            f"{self.answered} answered, {self.closed} connections closed",
            f"the witness wrote {self.acknowledged} records, and waited {self.longest_wait * 1000:.0f} ms at most "
            f"({self.longest_wait_after})",
            f"longest turn of the loop: {self.longest_turn * 1000:.0f} ms ({self.longest_turn_after})",
            f"memory at most: {self.memory_mb} MB",
            *(f"PROBLEM {problem}" for problem in self.problems),
        ]
        return "\n".join(lines)


class Run:
    def __init__(self, seed: int, folder: Path, bounds: Bounds, progress: Callable[[str], None] | None = None) -> None:
        self._bounds = bounds
        self._progress = progress
        self._broker = BrokerUnderTest(folder)
        self._world = World()
        self._recent: deque[Frame] = deque(maxlen=_REMEMBERED)
        self._report = Report(seed)
        self._restarts = 0

    def frames(self, first: int, last: int, *, restart_every: int | None = None) -> Report:
        """Send the frames from `first` to `last`, stop the broker in every way, and check its data."""
        started = time.monotonic()
        report, broker = self._report, self._broker
        broker.start()
        try:
            witness = Witness(broker.port)
            witness.create_topic()
            frames = Frames(report.seed, self._apis(), self._world)
            attacker = Attacker(report.seed, broker.port, self._world)
            witness.start()
            broker.longest_turn.take()
            for number in range(first, last + 1):
                frame = frames.make(number)
                self._recent.append(frame)
                attacker.send(frame)
                report.frames += 1
                if number % _LOOK_EVERY == 0 or number == last:
                    self._look(attacker, witness)
                    if report.problems:
                        break
                if restart_every and number % restart_every == 0:
                    self._restart(witness, attacker)
            witness.stop()
            attacker.close()
            report.answered, report.closed = attacker.answered, attacker.closed
            if not report.problems:
                self._end(witness)
            report.acknowledged = witness.acknowledged
        except Exception as error:
            report.problems.append(f"{type(error).__name__}: {error}\n{broker.log_tail()}")
        finally:
            broker.kill()
        report.seconds = time.monotonic() - started
        return report

    def _apis(self) -> dict[ApiKey, Versions]:
        with Wire("127.0.0.1", self._broker.port) as wire:
            request = ApiVersionsRequest(client_software_name="fuzz", client_software_version="1")
            found = wire.ask(ApiKey.API_VERSIONS, request, 3).api_keys
        # Produce is advertised from version 0, for old clients, and served from 3.
        return {
            key: Versions(max(row.min_version, 3) if key is ApiKey.PRODUCE else row.min_version, row.max_version)
            for row in found
            for key in (ApiKey(row.api_key),)
        }

    def _look(self, attacker: Attacker, witness: Witness) -> None:
        report, broker = self._report, self._broker
        turn = broker.longest_turn.take()
        if turn > LONG and self._progress is not None:
            self._progress(f"a turn of {turn * 1000:.0f} ms up to frame {self._recent[-1].number}")
        if turn > report.longest_turn:
            report.longest_turn = turn
            report.longest_turn_after = f"up to frame {self._recent[-1].number}"
        if witness.longest_wait > report.longest_wait:
            report.longest_wait = witness.longest_wait
            report.longest_wait_after = f"up to frame {self._recent[-1].number}"
        report.problems += broker.new_tracebacks() + attacker.problems + witness.problems
        if not broker.is_running:
            report.problems.append(f"the broker has ended:\n{broker.log_tail()}")
        else:
            report.memory_mb = max(report.memory_mb, broker.memory_mb())
        if self._bounds.turn_seconds is not None and turn > self._bounds.turn_seconds:
            report.problems.append(f"a turn of the loop took {turn * 1000:.0f} ms")
        if self._bounds.memory_mb is not None and report.memory_mb > self._bounds.memory_mb:
            report.problems.append(f"the broker has used {report.memory_mb} MB")
        if report.problems:
            report.latest_frames = self._latest()
        elif self._progress is not None and report.frames % (20 * _LOOK_EVERY) < _LOOK_EVERY:
            self._progress(f"{report.frames} frames, longest turn {report.longest_turn * 1000:.0f} ms")

    def _latest(self) -> str:
        return "\n".join(
            f"  {frame}\n    {summary(frame.message) if frame.message is not None else frame_line(frame.data)}"
            for frame in self._recent
        )

    def _restart(self, witness: Witness, attacker: Attacker) -> None:
        """Stop the broker, alternately by SIGKILL and SIGTERM, start it again, and reconnect all clients."""
        witness.stop()
        self._restarts += 1
        self._broker.kill() if self._restarts % 2 else self._broker.stop()
        self._broker.start()
        witness.reconnect()
        witness.verify()
        witness.start()
        attacker.reconnect()

    def _end(self, witness: Witness) -> None:
        """Everything acknowledged is there after a kill and after a stop, and the files are sound."""
        report, broker = self._report, self._broker
        for end in (broker.kill, broker.stop):
            end()
            broker.start()
            witness.reconnect()
            witness.verify()
        broker.stop()
        report.problems += witness.problems + broker.new_tracebacks()
        found = broker.check()
        if found:
            report.problems.append(f"barnabas check: {found}")
