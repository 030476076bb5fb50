"""A topic, or a range of it, as a DataFrame in one call."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from json import dumps
from typing import Final

from confluent_kafka import Consumer, KafkaException, TopicPartition
from pyspark.sql import DataFrame, SparkSession

from barnabas.pipeline.connector import KAFKA_OPTIONS
from barnabas.pipeline.errors import PipelineError

# Where reading starts or ends: one offset for every partition, offsets per partition, a time, or earliest/latest.
Bound = int | Mapping[int, int] | datetime | str

SECONDS_TO_ANSWER: Final = 30.0


def read_topic(
    spark: SparkSession,
    topic: str | Sequence[str],
    *,
    bootstrap: str,
    start: Bound = "earliest",
    end: Bound = "latest",
    headers: bool = False,
    options: Mapping[str, str] | None = None,
) -> DataFrame:
    """The records of a topic (or several) from `start` to `end`, which is not included.

    The columns are those of Spark's Kafka connector: key, value, topic, partition, offset, timestamp, timestampType,
    and headers on request. An offset that no longer exists, or does not exist yet, becomes the nearest one that does.
    A time means the first record at that time or later. Only committed records are read, unless `options`, which are
    the connector's own, say otherwise: `{"kafka.isolation.level": "read_uncommitted"}`.
    """
    topics = [topic] if isinstance(topic, str) else list(topic)
    security = {name.removeprefix("kafka."): value for name, value in (options or {}).items() if _is_of_client(name)}
    offsets = watermarks(topics, bootstrap, security)
    reader = spark.read.format("kafka").options(**KAFKA_OPTIONS)
    reader = reader.option("kafka.bootstrap.servers", bootstrap).option("subscribe", ",".join(topics))
    reader = reader.option("kafka.isolation.level", "read_committed").option("includeHeaders", headers)
    for name, value in {**_bound("starting", start, offsets), **_bound("ending", end, offsets)}.items():
        reader = reader.option(name, value)
    return reader.options(**(options or {})).load()


def watermarks(
    topics: Sequence[str], bootstrap: str, settings: Mapping[str, str] | None = None
) -> dict[str, dict[int, tuple[int, int]]]:
    """The start and end offsets of every partition of topics that must exist."""
    consumer = Consumer(
        {
            **(settings or {}),
            "bootstrap.servers": bootstrap,
            "group.id": "barnabas-watermarks",
            "enable.auto.commit": False,
            "allow.auto.create.topics": False,
            "log_level": 0,
        }
    )
    try:
        found = consumer.list_topics(timeout=SECONDS_TO_ANSWER).topics
        missing = [topic for topic in topics if topic not in found or found[topic].error is not None]
        if missing:
            there = ", ".join(sorted(name for name in found if not name.startswith("__"))) or "none"
            raise PipelineError(f"{bootstrap} has no topic {', '.join(missing)}; it has: {there}")
        return {
            topic: {
                number: consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=SECONDS_TO_ANSWER)
                for number in found[topic].partitions
            }
            for topic in topics
        }
    except KafkaException as error:
        raise PipelineError(f"no broker answers at {bootstrap} ({error.args[0].str()}); is it running?") from None
    finally:
        consumer.close()


def _is_of_client(name: str) -> bool:
    """Whether a connector option is one that every client needs to reach the broker, librdkafka included."""
    return name.startswith(("kafka.security.", "kafka.sasl.mechanism", "kafka.sasl.username", "kafka.sasl.password"))


def _bound(which: str, bound: Bound, offsets: Mapping[str, Mapping[int, tuple[int, int]]]) -> dict[str, str]:
    """The connector's options for a bound; `which` is starting or ending."""
    word = "earliest" if which == "starting" else "latest"
    if isinstance(bound, str):
        if bound != word:
            raise PipelineError(f"{which}: {bound} is neither {word}, an offset, offsets by partition, nor a datetime")
        return {f"{which}Offsets": bound}
    if isinstance(bound, datetime):
        if bound.tzinfo is None:
            raise PipelineError(f"{which}: {bound} has no time zone; give it one, as datetime(..., tzinfo=UTC)")
        options = {f"{which}Timestamp": str(int(bound.timestamp() * 1000))}
        # There may be no record that late: that is an empty result, not an error.
        return {**options, "startingOffsetsByTimestampStrategy": "latest"} if which == "starting" else options
    wanted: dict[str, dict[str, int]] = {}
    for topic, partitions in offsets.items():
        wanted[topic] = {}
        for number, (low, high) in partitions.items():
            default = low if which == "starting" else high
            offset = bound if isinstance(bound, int) else bound.get(number, default)
            wanted[topic][str(number)] = min(max(offset, low), high)
    return {f"{which}Offsets": dumps(wanted)}
