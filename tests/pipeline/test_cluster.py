"""A pipeline on a real Spark cluster: a master and two workers, whose python does not have Barnabas installed."""

import json
import os
import subprocess
import sys

import pytest

pytest.importorskip("pyspark")

from tests.pipeline.topics import Topics
from tests.support import quick_spark
from tests.support.environments import environment_without_barnabas
from tests.support.spark_cluster import SparkCluster

pytestmark = pytest.mark.spark

PIPELINE = """\
name: on-a-cluster
bootstrap: {bootstrap}
sources:
  numbers: {{topic: numbers, value: text}}
transforms:
  doubled:
    python: doubling:doubled     # beside this file, where no executor looks
    inputs: [numbers]
sinks:
  by-task: {{from: doubled, topic: doubled-by-task, partitions: 2, format: text, columns: [value], way: per-task}}
  by-batch: {{from: doubled, topic: doubled-by-batch, partitions: 2, format: text, columns: [value], way: per-batch}}
checkpoint: {checkpoint}
spark:
  spark.executor.memory: 512m
  spark.executor.extraJavaOptions: {options}
  spark.driver.host: 127.0.0.1
"""

DOUBLING = """\
from pyspark.sql import DataFrame
from pyspark.sql.functions import udf

def twice(text: str) -> str:
    return str(2 * int(text))

def doubled(numbers: DataFrame) -> DataFrame:
    return numbers.withColumn("value", udf(twice)("value"))
"""


def test_a_pipeline_runs_on_a_cluster_whose_executors_have_nothing_of_ours(spark_is_here, broker, tmp_path):
    topics = Topics(broker.bootstrap)
    topics.create(numbers=2)
    topics.fill("numbers", [str(number) for number in range(1000)])
    file = tmp_path / "pipeline" / "numbers.yaml"
    file.parent.mkdir()
    file.write_text(
        PIPELINE.format(
            bootstrap=broker.bootstrap, checkpoint=tmp_path / "checkpoint", options=json.dumps(quick_spark.options())
        )
    )
    file.with_name("doubling.py").write_text(DOUBLING)
    python = environment_without_barnabas(tmp_path / "python")
    (tmp_path / "cluster").mkdir()
    with SparkCluster(tmp_path / "cluster", workers=2) as cluster:
        done = subprocess.run(
            [sys.executable, "-m", "barnabas", "pipeline", "run", file, "--master", cluster.master, "--once"],
            env={**os.environ, "PYSPARK_PYTHON": str(python)},
            capture_output=True,
            text=True,
            timeout=600,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    expected = sorted(str(2 * number) for number in range(1000))
    for topic in ("doubled-by-task", "doubled-by-batch"):
        assert sorted(topics.values(topic)) == expected
    logs = list((tmp_path / "cluster").glob("worker-*/app-*/*/stderr"))
    assert len(logs) == 2
    assert all("Got assigned task" in log.read_text() for log in logs)
