"""Whatever Spark and Java raise becomes a sentence, and the whole of it goes to the log."""

import pytest

pytest.importorskip("pyspark")

from confluent_kafka import KafkaError, KafkaException
from py4j.protocol import Py4JNetworkError

from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.failures import explained
from barnabas.pipeline.model import Pipeline

PIPELINE = Pipeline("p", "host:9092", (), (), "/checkpoint")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (Exception("java.io.IOException: No space left on device\n\tat java.base/..."), "no room left on a disk"),
        (Exception("org.apache.kafka.clients.consumer.OffsetOutOfRangeException: {t-0=5}"), "deleted by retention"),
        (Exception("...UnknownTopicOrPartitionException: This server does not host"), "create it again"),
        (Exception("barnabas.pipeline.sinks.topic_per_task.OutOfOrderError: rows of t-0"), "`way: per-batch`"),
        (
            Exception("org.apache.kafka.common.errors.TimeoutException: Timed out"),
            "broker at host:9092 does not answer",
        ),
        (Exception("ModuleNotFoundError: No module named 'confluent_kafka'"), "lacks the module confluent_kafka"),
        (Exception("java.lang.OutOfMemoryError: Java heap space"), "spark.driver.memory"),
        (KafkaException(KafkaError(KafkaError._FENCED)), "another run of this pipeline"),
        (KafkaException(KafkaError(KafkaError._TRANSPORT)), "does not answer"),
        (Py4JNetworkError("Answer from Java side is empty"), "Java process is gone"),
        (Exception("AnalysisException: Failed to find data source: kafka. Please"), "--packages org.apache.spark:"),
        (
            Exception("Job aborted\n\tat a.b\nCaused by: a.b.IncompatibleSchemaException: no field 'x'\n\tat a.b"),
            "an Avro schema does not fit: no field 'x'",
        ),
        (
            Exception("An error occurred while calling o1.select.\n: java.lang.OddException: the cause\n\tat a.b"),
            "the pipeline failed: OddException: the cause",
        ),
        (
            Exception("An exception was raised by the Python Proxy\nCaused by: a.b.OddException: the cause\n\tat a.b"),
            "the pipeline failed: OddException: the cause",
        ),
        (
            Exception("Job aborted\nTraceback\nValueError: strange\n\tat org.apache"),
            "the pipeline failed: ValueError: strange",
        ),
    ],
)
def test_errors_become_sentences(error, said, tmp_path):
    log = tmp_path / "log"
    sentence = str(explained(error, PIPELINE, log))
    assert said in sentence
    assert "\n" not in sentence
    assert str(log) in sentence
    assert log.read_text().strip()


def test_a_sentence_stays_as_it_is():
    error = PipelineError("do this")
    assert explained(error, PIPELINE, None) is error
