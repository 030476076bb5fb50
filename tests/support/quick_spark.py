"""How a Spark that lives for a few tests is started.

The full compiler never pays for itself there, and most of the start is the loading of classes. So they come from an
archive of them as the JVM has them in memory (class data sharing), which the first run makes: with it, Spark starts and
does its first jobs with a third of the work.
"""

import os
import subprocess
import sys
from pathlib import Path

import pyspark

from barnabas.pipeline.java import java_home
from tests.support.cache import made_once

QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

# Loads most of what the tests need, and waits for Java, which writes the archive when it ends.
PROGRAM = """
from pyspark import SparkContext
from pyspark.sql.functions import col, window

from barnabas.pipeline.session import spark_session

spark = spark_session(master="local[2]", settings={"spark.sql.shuffle.partitions": "1"})
rows = spark.sql("SELECT id % 3 AS k, timestamp_seconds(id) AS at, to_json(struct(id)) AS v FROM range(100)")
rows.write.parquet("rows")
spark.sparkContext.parallelize([1], 1).map(str).collect()
rows.mapInPandas(lambda frames: frames, rows.schema).groupBy("k").count().orderBy("k").collect()
stream = spark.readStream.schema(rows.schema).parquet("rows").withWatermark("at", "1 second")
counts = stream.groupBy(window("at", "5 seconds"), col("k")).count()
query = counts.writeStream.option("checkpointLocation", "checkpoint").trigger(availableNow=True)
query.foreachBatch(lambda batch, number: batch.collect()).start().awaitTermination()
spark.stop()
java = SparkContext._gateway.proc
java.stdin.close()
java.wait()
"""


def options() -> str:
    # "disable": the JVM would print to stdout if it could not use the archive, for example another Java.
    return f"{QUICK} -Xlog:disable -XX:SharedArchiveFile={class_archive()}"


def class_archive() -> Path:
    return made_once("spark-classes", f"{java_home()} {pyspark.__file__} {pyspark.__version__} {PROGRAM}", make_archive)


def make_archive(work: Path) -> Path:
    archive = work / "classes.jsa"
    training = f"{QUICK} -Xlog:disable -XX:ArchiveClassesAtExit={archive}"
    environment = {**os.environ, "SPARK_SUBMIT_OPTS": training}
    subprocess.run([sys.executable, "-c", PROGRAM], cwd=work, env=environment, check=True)
    return archive
