"""Exactly once, proved by SIGKILL: the driver's Java, a Python worker or the broker dies at a marked point, and the
output at read_committed has every row once.

Every run is a process of its own (`barnabas pipeline run --once`), started again until it ends well. In CI a selection
runs; BARNABAS_ALL_KILLS=1 runs every point with every victim.
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

from pipeline.sinks.crashes import BATCH_POINTS, STAGE_POINTS, TASK_BATCH_POINTS, TASK_POINTS, VARIABLE
from tests.pipeline.topics import Topics

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark_is_here")]

ALL = os.environ.get("BARNABAS_ALL_KILLS") == "1"
RECORDS = 200

STATELESS = """\
name: stateless
sources:
  numbers: {topic: numbers, value: text, max_records_per_batch: 100}
transforms:
  doubled: |
    SELECT CAST(CAST(value AS INT) * 2 AS STRING) AS value, _topic, _partition, _offset FROM numbers
sinks:
  out: {from: doubled, topic: out, format: text, way: per-task, transaction_timeout: 30}
checkpoint: checkpoint
"""
STATEFUL = """\
name: stateful
sources:
  numbers: {topic: numbers, value: text, max_records_per_batch: 100}
transforms:
  counted: SELECT CAST(value AS INT) % 10 AS digit, count(*) AS count FROM numbers GROUP BY CAST(value AS INT) % 10
sinks:
  out: {from: counted, topic: out, mode: update, transaction_timeout: 30}
checkpoint: checkpoint
spark: {spark.sql.shuffle.partitions: 1}
"""


class Kills:
    """Runs a pipeline again and again, with one victim a run, until it has ended well."""

    def __init__(self, broker, folder: Path, text: str) -> None:
        self.broker = broker
        self.folder = folder
        (folder / "pipeline.yaml").write_text(text)
        self.topics = Topics(broker.bootstrap)
        self.topics.create(numbers=2, out=2)
        self.topics.fill("numbers", [(str(n), str(n)) for n in range(RECORDS)])
        self.runs = 0

    def run(self, point: str | None = None, victim: str = "self") -> tuple[int, str]:
        """One run; the victim dies when the point is reached for the first time."""
        self.runs += 1
        environment = dict(os.environ)
        fired = self.folder / f"fired-{self.runs}"
        if point is not None:
            environment[VARIABLE] = f"{point} {victim} {fired}"
        # Tasks may be tried again, as on a cluster: the death of a Python worker need not end the run.
        command = [
            sys.executable,
            "-m",
            "broker.cli",
            "pipeline",
            "run",
            "pipeline.yaml",
            "--once",
            "--master",
            "local[2,3]",
        ]
        command += ["--set", f"bootstrap={self.broker.bootstrap}"]
        log = self.folder / f"run-{self.runs}.log"
        with log.open("w") as output:
            done = subprocess.run(command, cwd=self.folder, env=environment, stdout=output, stderr=output, timeout=280)
        said = log.read_text()
        if point is not None:
            assert fired.exists(), f"{point} was never reached:\n{said}"
        return done.returncode, said

    def run_to_the_end(self) -> None:
        status, said = self.run()
        assert status == 0, said


def check_stateless(kills: Kills) -> None:
    found = Counter(int(value) for value in kills.topics.values("out"))
    assert found == {2 * n: 1 for n in range(RECORDS)}


def check_stateful(kills: Kills) -> None:
    """Two batches of a hundred: every digit's count is written once a batch, ten and then twenty."""
    found = Counter((row["digit"], row["count"]) for row in map(json.loads, kills.topics.values("out")))
    assert found == {(digit, count): 1 for digit in range(10) for count in (10, 20)}
    staged = list((kills.folder / "checkpoint" / "staging").rglob("*"))
    assert not [each for each in staged if each.is_file()], "staged files were left behind"


def chosen(points, in_ci):
    return points if ALL else [point for point in points if point in in_ci]


@pytest.mark.parametrize("point", chosen(TASK_POINTS, ["task-offsets-sent", "task-committed"]))
def test_per_task_survives_the_death_of_a_python_worker(broker, tmp_path, point):
    kills = Kills(broker, tmp_path, STATELESS)
    status, said = kills.run(point, "self")
    assert status == 0, said  # the task was tried again
    check_stateless(kills)


@pytest.mark.parametrize("point", chosen((*TASK_POINTS, *TASK_BATCH_POINTS), ["task-committed"]))
def test_per_task_survives_the_death_of_the_jvm(broker, tmp_path, point):
    kills = Kills(broker, tmp_path, STATELESS)
    status, said = kills.run(point, "jvm")
    assert status != 0
    assert "Java process is gone" in said
    kills.run_to_the_end()
    check_stateless(kills)


@pytest.mark.parametrize("point", chosen(STAGE_POINTS, []))
def test_per_batch_survives_the_death_of_a_python_worker(broker, tmp_path, point):
    kills = Kills(broker, tmp_path, STATEFUL)
    status, said = kills.run(point, "self")
    assert status == 0, said
    check_stateful(kills)


@pytest.mark.parametrize("victim", ["jvm", "self"])
@pytest.mark.parametrize("point", chosen(BATCH_POINTS, []))
def test_per_batch_survives_the_death_of_the_driver(broker, tmp_path, point, victim):
    kills = Kills(broker, tmp_path, STATEFUL)
    status, _ = kills.run(point, victim)
    assert status != 0
    kills.run_to_the_end()
    check_stateful(kills)


@pytest.mark.skipif(ALL, reason="the points are tested one by one")
def test_per_batch_survives_one_death_after_another(broker, tmp_path):
    kills = Kills(broker, tmp_path, STATEFUL)
    for point, victim in (("batch-offsets-sent", "jvm"), ("batch-committed", "self")):
        status, said = kills.run(point, victim)
        assert status != 0, said
    kills.run_to_the_end()
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
    kills = Kills(broker, tmp_path, text)
    dead = broker.process

    def start_again() -> None:
        dead.wait()
        dead.stdout.close()
        broker.start()  # on its port and its data

    restart = threading.Thread(target=start_again, daemon=True)
    restart.start()
    status, _ = kills.run(point, str(dead.pid))
    restart.join(60)
    if status != 0:
        kills.run_to_the_end()
    check(kills)
