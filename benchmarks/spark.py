"""Spark with Barnabas: reading a topic, reading its files, and writing exactly once. `python -m benchmarks spark`.

It takes some minutes, mostly in Spark, so it runs only when named. Every line compares two ways of doing the same work,
one right after the other in every round, and computes the ratio within a round. The first round is a warm-up and
is not counted.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pyspark
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import DataFrame, SparkSession
from rich.console import Console

from barnabas.pipeline import read_topic, spark_session
from barnabas.pipeline.model import Delivery, Encoding, Format, Pipeline, Source, TopicSink
from barnabas.pipeline.running import run
from benchmarks.broker import machine
from benchmarks.broker.comparison import Spread
from benchmarks.broker.report import number
from tests.support.apache_kafka import LONG_LIVED, ApacheKafka, unavailable
from tests.support.broker_process import BrokerProcess

RESULTS: Final = Path(__file__).parent / "results"
PARTITIONS: Final = 2
VALUE_SIZE: Final = 100
TOPIC: Final = "rows"
# The last batch of a run is the warm one, whose figure counts.
BATCHES: Final = 4

Measure = Callable[[], float]


@dataclass
class Line:
    """Two ways of doing the same work, measured in rows per second."""

    title: str
    first_name: str
    first: Measure
    second_name: str
    second: Measure
    target: float
    firsts: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def measure(self, counts: bool) -> None:
        first, second = self.first(), self.second()
        print(f"  {self.title}: {self.first_name} {number(first)}, {self.second_name} {number(second)}", flush=True)
        if counts:
            self.firsts.append(first)
            self.seconds.append(second)

    @property
    def ratio(self) -> Spread:
        return Spread.of([second / first for first, second in zip(self.firsts, self.seconds, strict=True)])

    def cells(self) -> tuple[str, ...]:
        first, second, ratio = Spread.of(self.firsts), Spread.of(self.seconds), self.ratio
        return (
            self.title,
            f"{self.first_name}: {number(first.median)}",
            f"{self.second_name}: {number(second.median)}",
            f"{number(ratio.median)} ({number(ratio.low)} to {number(ratio.high)})",
            f">= {self.target:g}, {'met' if ratio.median >= self.target else 'missed'}",
        )


def main(quick: bool = False) -> None:
    missing = unavailable()
    if missing:
        print(f"spark: left out, because Apache Kafka cannot run here: {missing}")
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))  # so that brokers and Spark stop too
    rows, rounds = (200_000, 2) if quick else (1_000_000, 3)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="barnabas-spark-")))
        kafka = stack.enter_context(ApacheKafka(jvm_options=LONG_LIVED))
        barnabas = stack.enter_context(BrokerProcess(folder / "data"))
        spark = spark_session("benchmark", master="local[2]", log=folder / "spark.log")
        stack.callback(spark.stop)
        for bootstrap in (kafka.bootstrap, barnabas.bootstrap):
            fill(bootstrap, rows)
        lines = [
            *reading(spark, kafka.bootstrap, barnabas.bootstrap, barnabas.data, rows),
            writing(spark, barnabas.bootstrap, folder, rows),
        ]
        others = machine.OtherLoad()
        for round_number in range(rounds + 1):
            for line in lines:
                line.measure(counts=round_number > 0)
            print(f"spark: round {round_number} of {rounds}", flush=True)
        busy = others.share()
    text = report(lines, rows, rounds, busy)
    print(f"\n{text}")
    RESULTS.mkdir(exist_ok=True)
    name = "spark-quick" if quick else "spark"
    (RESULTS / f"{name}.txt").write_text(text + "\n")
    content = {
        "machine": machine.describe(),
        "rows": rows,
        "rounds": rounds,
        "others": busy,
        "lines": [
            {"title": line.title, line.first_name: line.firsts, line.second_name: line.seconds, "target": line.target}
            for line in lines
        ],
    }
    (RESULTS / f"{name}.json").write_text(json.dumps(content, indent=2) + "\n")
    print(f"written: {os.path.relpath(RESULTS / name)}.txt and .json")


def fill(bootstrap: str, rows: int) -> None:
    """The topic, with values that are all different."""
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "linger.ms": 20,
            "batch.num.messages": 10_000,
            "queue.buffering.max.messages": 2_000_000,
        }
    )
    create_topic(bootstrap, TOPIC)
    for i in range(rows):
        producer.produce(TOPIC, b"%0*d" % (VALUE_SIZE, i), partition=i % PARTITIONS)
        if not i % 10_000:
            producer.poll(0)
    if producer.flush(120):
        raise RuntimeError(f"{bootstrap} did not take all rows in two minutes")


def create_topic(bootstrap: str, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})  # must live until the response has arrived
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(60)


def reading(spark: SparkSession, kafka: str, barnabas: str, data: Path, rows: int) -> list[Line]:
    def connector(bootstrap: str) -> Measure:
        return lambda: consumed(read_topic(spark, TOPIC, bootstrap=bootstrap), rows)

    def untuned(bootstrap: str) -> Measure:
        reader = spark.read.format("kafka").option("kafka.bootstrap.servers", bootstrap).option("subscribe", TOPIC)
        return lambda: consumed(reader.load(), rows)

    def files(schema: str | None = None) -> Measure:
        def measure() -> float:
            reader = spark.read.format("barnabas").option("subscribe", TOPIC).option("maxPartitionBytes", 32 << 20)
            return consumed((reader.schema(schema) if schema else reader).load(str(data)), rows)

        return measure

    title = f"Spark reads {rows:,} x {VALUE_SIZE} B"
    return [
        Line(title, "Apache Kafka", connector(kafka), "Barnabas", connector(barnabas), 1.0),
        Line("The connector, tuned", "as it comes", untuned(barnabas), "tuned", connector(barnabas), 1.0),
        Line("Segment files, all columns", "connector", connector(barnabas), "files", files(), 1.0),
        Line("Segment files, the value", "connector", connector(barnabas), "files", files("value binary"), 1.0),
    ]


def consumed(frame: DataFrame, rows: int) -> float:
    """Rows per second, with all columns read into Spark and dropped there."""
    began = time.monotonic()
    frame.write.format("noop").mode("overwrite").save()
    return rows / (time.monotonic() - began)


def writing(spark: SparkSession, bootstrap: str, folder: Path, rows: int) -> Line:
    """Copy the topic to another: with Spark's own sink, and exactly once with one transaction per task."""
    numbers = iter(range(1_000_000))

    def copy(delivery: Delivery) -> Measure:
        def measure() -> float:
            name = f"copy-{next(numbers)}"
            create_topic(bootstrap, name)
            source = Source(TOPIC, (TOPIC,), value=Format(Encoding.BYTES), max_records_per_batch=rows // BATCHES)
            sink = TopicSink("out", TOPIC, name, format=Format(Encoding.BYTES), columns=("value",), delivery=delivery)
            pipeline = Pipeline(name, bootstrap, (source,), (sink,), str(folder / name))
            with open(os.devnull, "w") as nowhere:
                outcome = run(pipeline, once=True, spark=spark, console=Console(file=nowhere))
            if outcome.rows_read != rows:
                raise RuntimeError(f"{outcome.rows_read} of {rows} rows were copied")
            (state,) = outcome.states.values()
            return state.rows_per_second

        return measure

    own, exactly_once = copy(Delivery.AT_LEAST_ONCE), copy(Delivery.EXACTLY_ONCE)
    return Line("Exactly-once sink, the last batch", "Spark's own sink", own, "exactly once", exactly_once, 0.5)


def report(lines: list[Line], rows: int, rounds: int, busy: float) -> str:
    header = ("rows/s", "", "", "ratio (min to max)", "target")
    cells = [header, *(line.cells() for line in lines)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    padded = [[cell.ljust(width) for cell, width in zip(row, widths, strict=True)] for row in cells]
    table = [f"| {' | '.join(row)} |" for row in padded]
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    facts = machine.describe()
    heading = [
        f"{facts['date']}, {facts['cpu']}, {facts['cores']} cores, {facts['memory']}, {facts['kernel']}",
        f"Spark {pyspark.__version__} on local[2], {rows:,} rows of {VALUE_SIZE} B in {PARTITIONS} partitions; "
        f"Apache Kafka {facts['apache kafka']}; rounds, after one to warm up: {rounds}",
    ]
    notes = ["Medians of the rounds; the ratio is the second divided by the first, within a round."]
    if busy > 0.1:
        notes.append(f"Others took {busy:.0%} of the machine meanwhile: ratios hold better than figures.")
    return "\n".join([*heading, "", table[0], rule, *table[1:], "", *notes])
