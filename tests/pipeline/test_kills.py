"""Exactly once, proved by SIGKILL: the driver, its Java, a Python worker or the broker dies at a marked point, and the
output at read_committed has every row once.

Every run is a process of its own (`barnabas pipeline run --once`), started again until it ends well. In CI a selection
of the points runs; BARNABAS_ALL_KILLS=1 takes every point with every victim.
"""

import json
import os
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from barnabas.pipeline.sinks.crashes import BATCH_POINTS, STAGE_POINTS, TASK_BATCH_POINTS, TASK_POINTS, VARIABLE
from tests.pipeline.topics import Topics

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark_is_here"), pytest.mark.timeout(1800)]

ALL = os.environ.get("BARNABAS_ALL_KILLS") == "1"
BATCH = 50

STATELESS = f"""\
name: stateless
sources:
  numbers: {{topic: numbers, value: text, max_records_per_batch: {BATCH}}}
transforms:
  doubled: |
    SELECT CAST(CAST(value AS INT) * 2 AS STRING) AS value, _topic, _partition, _offset FROM numbers
sinks:
  out: {{from: doubled, topic: out, format: text, way: per-task, transaction_timeout: 30}}
checkpoint: checkpoint
"""
STATEFUL = f"""\
name: stateful
sources:
  numbers: {{topic: numbers, value: text, max_records_per_batch: {BATCH}}}
transforms:
  counted: SELECT CAST(value AS INT) % 10 AS digit, count(*) AS count FROM numbers GROUP BY CAST(value AS INT) % 10
sinks:
  out: {{from: counted, topic: out, mode: update, transaction_timeout: 30}}
checkpoint: checkpoint
spark: {{spark.sql.shuffle.partitions: 1}}
"""


class Kills:
    """Runs a pipeline again and again over the same records, with victims on the way."""

    def __init__(self, broker, folder: Path, text: str, *, batches: int, partitions: int) -> None:
        self.broker = broker
        self.folder = folder
        self.records = batches * BATCH
        (folder / "pipeline.yaml").write_text(text)
        self.topics = Topics(broker.bootstrap)
        self.topics.create(numbers=partitions, out=2)
        self.topics.fill("numbers", [(str(n), str(n)) for n in range(self.records)])
        self.runs = 0

    def run(self, *victims: tuple[str, str]) -> tuple[int, str]:
        """One run; each victim dies when its point is reached for the first time."""
        self.runs += 1
        environment = dict(os.environ)
        fired = {point: self.folder / f"{self.runs}-{point}" for point, _ in victims}
        if victims:
            environment[VARIABLE] = ";".join(f"{point} {victim} {fired[point]}" for point, victim in victims)
        # Tasks may be tried again, as on a cluster: the death of a Python worker need not end the run.
        command = [sys.executable, "-m", "barnabas", "pipeline", "run", "pipeline.yaml", "--once"]
        command += ["--master", "local[2,8]", "--config", f"bootstrap={self.broker.bootstrap}"]
        log = self.folder / f"run-{self.runs}.log"
        with log.open("w") as output:
            done = subprocess.run(command, cwd=self.folder, env=environment, stdout=output, stderr=output, timeout=600)
        said = log.read_text()
        for point, file in fired.items():
            assert file.exists(), f"{point} was never reached:\n{said}"
        return done.returncode, said

    def run_to_the_end(self, *victims: tuple[str, str]) -> None:
        status, said = self.run(*victims)
        assert status == 0, said


def check_stateless(kills: Kills) -> None:
    found = Counter(int(value) for value in kills.topics.values("out"))
    assert found == {2 * n: 1 for n in range(kills.records)}


def check_stateful(kills: Kills) -> None:
    """Every batch has all digits equally often, and writes the new count of each of them once."""
    found = Counter((row["digit"], row["count"]) for row in map(json.loads, kills.topics.values("out")))
    each = BATCH // 10
    assert found == {(digit, count): 1 for digit in range(10) for count in range(each, kills.records // 10 + 1, each)}
    staged = [each for each in (kills.folder / "checkpoint" / "staging").rglob("*") if each.is_file()]
    assert not staged, "staged files were left behind"


def test_one_transaction_per_task(broker, tmp_path):
    points = (*TASK_POINTS, *TASK_BATCH_POINTS) if ALL else ("task-committed",)
    kills = Kills(broker, tmp_path, STATELESS, batches=len(points) + 2, partitions=2)
    for point in points:
        status, said = kills.run((point, "jvm"))
        assert status == 1
        assert said.splitlines()[-1].startswith("barnabas: Spark's Java process is gone")
        assert "Traceback" not in said
    # Python workers may die at every point in one run: their tasks are tried again.
    kills.run_to_the_end(*((point, "self") for point in TASK_POINTS))
    check_stateless(kills)


@pytest.mark.parametrize(
    "victims",
    [[(point, victim) for point in BATCH_POINTS] for victim in ("jvm", "self")]
    if ALL
    else [[("batch-offsets-sent", "jvm"), ("batch-committed", "self")]],
)
def test_one_transaction_per_batch(broker, tmp_path, victims):
    kills = Kills(broker, tmp_path, STATEFUL, batches=len(victims) + 2, partitions=1)
    for victim in victims:
        status, said = kills.run(victim)
        assert status != 0, said
    kills.run_to_the_end(*((point, "self") for point in STAGE_POINTS))
    check_stateful(kills)


@pytest.mark.parametrize(
    ("text", "point", "check"),
    [
        (STATELESS, "task-produced", check_stateless),
        *([(STATELESS, "task-offsets-sent", check_stateless)] if ALL else []),
        *([(STATEFUL, "batch-produced", check_stateful)] if ALL else []),
        *([(STATEFUL, "batch-offsets-sent", check_stateful)] if ALL else []),
    ],
)
def test_the_death_of_the_broker(broker, tmp_path, text, point, check):
    kills = Kills(broker, tmp_path, text, batches=2, partitions=1)
    dead = broker.process

    def start_again() -> None:
        dead.wait()
        dead.stdout.close()
        broker.start()  # on its port and its data

    restart = threading.Thread(target=start_again, daemon=True)
    restart.start()
    status, _ = kills.run((point, str(dead.pid)))
    restart.join(60)
    if status != 0:  # the broker may be away for longer than Spark's own client waits
        kills.run_to_the_end()
    check(kills)
