"""The example pipelines, run on our own broker."""

import json
import time
from collections import Counter
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from barnabas.pipeline.file import load
from barnabas.pipeline.running import run
from tests.pipeline.topics import Topics
from tests.support.apache_kafka import ApacheKafka, unavailable

pytestmark = pytest.mark.spark

EXAMPLES = Path(__file__).parents[2] / "examples" / "pipelines"


@pytest.fixture
def example(broker, spark, tmp_path):
    """Run an example over all existing records."""
    return partial(run_example, broker.bootstrap, spark, tmp_path)


def run_example(bootstrap, spark, folder, name):
    overrides = [("bootstrap", bootstrap), ("checkpoint", str(folder / name))]
    return run(load(EXAMPLES / f"{name}.yaml", overrides), once=True, spark=spark)


def test_word_count(broker, example):
    topics = Topics(broker.bootstrap)
    topics.create(lines=2)
    window = int(time.time()) // 10 * 10 - 60
    first, second = (datetime.fromtimestamp(window + more, UTC).strftime("%FT%T.000Z") for more in (0, 10))
    at = window * 1000
    topics.fill(
        "lines",
        [
            {"value": "To be, or not to be", "timestamp": at},
            {"value": "to be", "timestamp": at + 5_000},
            {"value": "to", "timestamp": at + 10_000},
        ],
    )
    example("word_count")
    rows = [json.loads(each) for each in topics.values("word-counts")]
    counts = {(row["window_start"], row["word"]): row["count"] for row in rows}
    assert counts == {
        (first, "to"): 3,
        (first, "be"): 3,
        (first, "or"): 1,
        (first, "not"): 1,
        (second, "to"): 1,
    }


def test_clickstream(broker, example):
    topics = Topics(broker.bootstrap)
    topics.create(clicks=2, users=1)
    topics.fill("users", [("k", '{"name": "Karl"}'), ("k", '{"name": "Josef", "country": "CZ"}'), ("f", None)])
    clicks = [
        ("k", '{"user": "k", "page": "/castle", "at": "2026-01-01T08:00:00Z"}'),
        ("k", '{"user": "k", "page": "/inn", "at": "2026-01-01T08:04:00Z"}'),
        ("k", '{"user": "k", "page": "/inn", "at": "2026-01-01T08:30:00Z"}'),
        ("f", '{"user": "f", "page": "/inn", "at": "2026-01-01T08:01:00Z"}'),
        ("f", '{"user": "f", "page": "/late", "at": "2026-01-01T12:00:00Z"}'),
        ("x", "no click"),
        ("x", '{"user": "x", "at": "2026-01-01T08:01:00Z"}'),
    ]
    topics.fill("clicks", clicks)
    example("clickstream")
    rows = [json.loads(each) for each in topics.values("sessions")]
    sessions = sorted(rows, key=lambda row: (row["user"], row["begun"]))
    assert [(row["user"], row.get("name"), row.get("country"), row["clicks"], row["pages"]) for row in sessions] == [
        ("f", None, None, 1, ["/inn"]),
        ("k", "Josef", "CZ", 2, ["/castle", "/inn"]),
        ("k", "Josef", "CZ", 1, ["/inn"]),
    ]
    dead = {message.value(): dict(message.headers()) for message in topics.read("clicks-dead")}
    assert dead.keys() == {b"no click", b'{"user": "x", "at": "2026-01-01T08:01:00Z"}'}
    assert dead[b"no click"]["barnabas.reason"].startswith(b"the value is not JSON")
    assert dead[b"no click"]["barnabas.topic"] == b"clicks"
    missing = dead[b'{"user": "x", "at": "2026-01-01T08:01:00Z"}']
    assert missing["barnabas.reason"] == b"the field page is missing or null, and the schema says NOT NULL"


def test_copy_continues_where_it_was(broker, example):
    topics = Topics(broker.bootstrap)
    topics.create(orders=2)
    headers = [("trace", b"1"), ("trace", b"2")]
    topics.fill("orders", [{"key": str(n), "value": f"order {n}", "headers": headers} for n in range(100)])
    first = example("copy")
    assert first.rows_read == 100
    topics.fill("orders", [(str(n), f"order {n}") for n in range(100, 120)])
    second = example("copy")
    assert second.rows_read == 20
    copies = topics.read("orders-copied")
    assert Counter(message.value().decode() for message in copies) == {f"order {n} (copied)": 1 for n in range(120)}
    assert all(message.value().decode() == f"order {message.key().decode()} (copied)" for message in copies)
    assert [message.headers() for message in copies].count(headers) == 100


@pytest.mark.java
def test_copy_on_apache_kafka(spark, tmp_path):
    reason = unavailable()
    if reason:
        pytest.skip(reason)
    with ApacheKafka() as kafka:
        topics = Topics(kafka.bootstrap)
        topics.create(orders=2)
        topics.fill("orders", [(str(n), f"order {n}") for n in range(50)])
        run_example(kafka.bootstrap, spark, tmp_path, "copy")
        topics.fill("orders", [(str(n), f"order {n}") for n in range(50, 60)])
        run_example(kafka.bootstrap, spark, tmp_path, "copy")
        assert Counter(topics.values("orders-copied")) == {f"order {n} (copied)": 1 for n in range(60)}
