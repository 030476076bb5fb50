"""Which queries are written one transaction per task, and that queries which must not be lose no row."""

from collections import Counter

import pytest

pytest.importorskip("pyspark")

from barnabas.pipeline.file.reading import parse
from barnabas.pipeline.running import run
from tests.pipeline.topics import Topics

pytestmark = pytest.mark.spark

PLACE = "_topic, _partition, _offset"
PIPELINE = f"""\
name: plans
sources:
  numbers: {{topic: numbers, value: text}}
  others: {{topic: others, value: text}}
  wanted: {{topic: wanted, value: text, table: true}}
transforms:
  both: SELECT value, {PLACE} FROM numbers UNION ALL SELECT value, {PLACE} FROM others
  itself: |
    SELECT concat('a', value) AS value, {PLACE} FROM numbers
    UNION ALL SELECT concat('b', value) AS value, {PLACE} FROM numbers
  named_twice: |
    WITH n AS (SELECT * FROM numbers)
    SELECT concat('a', value) AS value, {PLACE} FROM n UNION ALL SELECT concat('b', value) AS value, {PLACE} FROM n
  asked_for: SELECT value, {PLACE} FROM numbers WHERE value IN (SELECT _key FROM wanted)
sinks:
  both: {{from: both, topic: both, partitions: 1, format: text, columns: value}}
  itself: {{from: itself, topic: itself, partitions: 1, format: text, columns: value}}
  named-twice: {{from: named_twice, topic: named-twice, partitions: 1, format: text, columns: value}}
  asked-for: {{from: asked_for, topic: asked-for, partitions: 1, format: text, columns: value}}
checkpoint: checkpoint
spark: {{spark.sql.shuffle.partitions: 1}}
"""


def test_rows_of_a_source_partition_never_come_in_two_tasks(broker, spark, tmp_path):
    topics = Topics(broker.bootstrap)
    topics.create(numbers=1, others=1, wanted=1)
    numbers = [str(n) for n in range(20)]
    topics.fill("numbers", [(n, n) for n in numbers])
    topics.fill("others", ["x", "y"])
    topics.fill("wanted", [(n, "yes") for n in numbers])
    outcome = run(parse(PIPELINE, "plans.yaml", tmp_path, [("bootstrap", broker.bootstrap)]), once=True, spark=spark)
    how = {name: state.how.partition("exactly once, ")[2].partition(" (")[0] for name, state in outcome.states.items()}
    assert how == {
        "both": "one transaction per task",
        "itself": "one transaction per batch",
        "named-twice": "one transaction per batch",
        "asked-for": "one transaction per batch",
    }
    twice = [letter + n for n in numbers for letter in "ab"]
    assert Counter(topics.values("both")) == Counter([*numbers, "x", "y"])
    assert Counter(topics.values("itself")) == Counter(twice)
    assert Counter(topics.values("named-twice")) == Counter(twice)
    assert Counter(topics.values("asked-for")) == Counter(numbers)
