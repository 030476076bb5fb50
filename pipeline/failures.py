"""Turns whatever Spark, Java or a client raised into a sentence that says what to do; the details go to the log."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from confluent_kafka import KafkaException
from py4j.protocol import Py4JError, Py4JJavaError

from barnabas.pipeline.bounded import NoAnswerError
from barnabas.pipeline.connector import default_packages
from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.frames.decoding import STOPPED
from barnabas.pipeline.model import Pipeline

# A pattern in the text of an error -> the sentence. Tried in order.
_KNOWN: Final[tuple[tuple[str, str], ...]] = (
    (
        r"No space left on device|Disk quota exceeded",
        "there is no room left on a disk that the pipeline writes to (its checkpoint {checkpoint}, a Parquet folder or "
        "Spark's temporary files); make some and start it again. Nothing is lost: it continues where it stopped",
    ),
    (
        r"OffsetOutOfRange|Some data may have been lost|KAFKA_DATA_LOSS",
        "the records that the pipeline would read next are not in the topic: deleted by retention, or the topic was "
        "recreated, or `from` names an offset beyond its end. Remove the checkpoint {checkpoint} to start over with "
        "what is there, lengthen the topic's retention.ms, or correct `from`",
    ),
    (
        r"UnknownTopicOrPartition|UNKNOWN_TOPIC_OR_PART",
        "a topic that the pipeline uses is gone; create it again, or correct its name in the file",
    ),
    (
        r"_FENCED|ProducerFenced|INVALID_PRODUCER_EPOCH|FENCED_INSTANCE",
        "a transaction was taken over by another run of this pipeline, or outlived its timeout; let only one run at a "
        "time, or give the sink a larger `transaction_timeout` or its source a smaller `max_records_per_batch`",
    ),
    (
        r"OutOfOrderError",
        "rows reached the sink in another order than in the source, which `way: per-task` cannot handle; give the "
        "sink `way: per-batch`",
    ),
    (
        r"_TRANSPORT|_ALL_BROKERS_DOWN|_TIMED_OUT|TimeoutException|DisconnectException|Connection refused",
        "the broker at {bootstrap} does not answer; start it again, then the pipeline: it continues where it stopped",
    ),
    (
        r"No module named '([\w.]+)'",
        "Python on an executor lacks the module {0}: run pip install '.[pipeline]' there, in a clone of Barnabas",
    ),
    (
        r"Failed to find data source: kafka",
        "this Spark session has no Kafka connector; start it with `barnabas.pipeline.spark_session()`, or with "
        "`--packages " + ",".join(default_packages()) + "`",
    ),
    (
        r"IncompatibleSchemaException: (.*)|SchemaParseException: (.*)",
        "an Avro schema does not fit: {0}",
    ),
    (
        r"MSG_SIZE_TOO_LARGE|RecordTooLarge",
        "a record is larger than what may be sent; make the rows smaller, or raise message.max.bytes under `kafka` in "
        "the file and the topic's max.message.bytes",
    ),
    (
        r"TOPIC_AUTHORIZATION_FAILED|_AUTHENTICATION|GROUP_AUTHORIZATION|SaslAuthentication",
        "the broker at {bootstrap} refuses this client; check the settings under `security` in the file, or those of "
        "--client-config",
    ),
    (r"OutOfMemoryError", "Spark ran out of memory; set spark.driver.memory (or spark.executor.memory) under `spark`"),
)
_BEFORE: Final = re.compile(r'^(: |Caused by: |Exception in thread "[^"]*" )')
_STOPPED: Final = re.compile(re.escape(STOPPED) + r"\s*(.*?)(?: SQLSTATE|\n|$)")


def explained(error: BaseException, pipeline: Pipeline, log: Path | str | None) -> PipelineError:
    if isinstance(error, PipelineError):
        return error
    text = f"{type(error).__name__}: {error}"
    if isinstance(error, KafkaException):
        text = f"KafkaException: {error.args[0].name()} {error.args[0].str()}"
    elif isinstance(error, NoAnswerError):
        text = "_TIMED_OUT"
    append_to_log(log, text)
    where = f" (all of it: {log})" if log is not None else ""
    # What Java itself raised is a Py4JJavaError (or one of Spark's); the others mean that Java did not answer.
    if isinstance(error, Py4JError | ConnectionError) and not isinstance(error, Py4JJavaError):
        return PipelineError(
            "Spark's Java process is gone (killed, or out of memory); start the pipeline again: it continues where it "
            f"stopped{where}"
        )
    stopped = _STOPPED.search(text)
    if stopped is not None:
        return PipelineError(
            f"the pipeline stopped at a bad record, as `bad_records: stop` says: {stopped[1]}. Correct the "
            "record's producer or the schema, send such records elsewhere (`bad_records: {topic: NAME}`), or skip them "
            f"(`bad_records: skip`){where}"
        )
    for pattern, sentence in _KNOWN:
        # The last one is closest to the cause.
        found = next(reversed(list(re.finditer(pattern, text))), None)
        if found is not None:
            said = sentence.format(
                *filter(None, found.groups()), checkpoint=pipeline.checkpoint, bootstrap=pipeline.bootstrap
            )
            return PipelineError(said + where)
    return PipelineError(f"the pipeline failed: {gist(text)}{where}")


def gist(text: str) -> str:
    """The most informative line: the last of a Python traceback, or the first of Java's."""
    lines = [_BEFORE.sub("", line.strip()) for line in text.splitlines() if line.strip()]
    lines = [line for line in lines if not line.startswith("WARNING:")]
    raised = [line for line in lines if re.match(r"[\w.]+(Error|Exception): \S", line) and "Py4J" not in line]
    chosen = raised[-1] if raised else lines[0] if lines else text
    return re.sub(r"^\w+(\.\w+)*\.", "", chosen)[:500]


def append_to_log(log: Path | str | None, text: str) -> None:
    if log is None:
        return
    try:
        with Path(log).open("a", encoding="utf-8") as file:
            file.write(f"\n{text}\n")
    except OSError:
        pass  # the sentence is what matters
