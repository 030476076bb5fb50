"""Schemas as Spark writes them, parsed without Spark, and values that do not fit them."""

import json

import pytest

pytest.importorskip("pyspark")

from barnabas.pipeline.schema import Field, SchemaError, Type, bytes_of_nulls, misfit, parse_schema


def test_columns_with_types_and_not_null():
    assert parse_schema("id INT NOT NULL, `odd name` string COMMENT 'x', price DECIMAL(10, 2)") == (
        Field("id", Type("INT"), nullable=False),
        Field("odd name", Type("STRING")),
        Field("price", Type("DECIMAL", size="(10,2)")),
    )


def test_nested_types_print_as_spark_writes_them():
    fields = parse_schema("a ARRAY<STRUCT<x: INT, y: MAP<STRING, DOUBLE>>>")
    assert str(fields[0].type) == "ARRAY<STRUCT<`x`: INT, `y`: MAP<STRING, DOUBLE>>>"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "expected a column's name, not the end"),
        ("id", "expected the type of the column id, not the end"),
        ("id INTT", "unknown type INTT; did you mean INT?"),
        ("id INT name STRING", "after the column id: expected a comma, not 'name'"),
        ("a ARRAY<INT", "expected > after ARRAY, not the end"),
        ("a DECIMAL(10", "parenthesis after DECIMAL is not closed"),
        ("id INT, ID STRING", "the column id is there twice"),
        ("id INT NOT", "expected NULL after NOT"),
        ("id ?", "unexpected '?'"),
    ],
)
def test_an_invalid_schema_says_why(text, said):
    with pytest.raises(SchemaError) as caught:
        parse_schema(text)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ('{"id": 1, "tags": ["a"], "at": {"x": 1.5}}', None),
        ('{"id": 1}', None),
        ("[1]", "a JSON object is expected, and this is an array"),
        ('{"tags": []}', "the field id is missing or null, and the schema says NOT NULL"),
        ('{"id": "one"}', "the field id should be INT, and is the text 'one'"),
        ('{"id": true}', "the field id should be INT, and is true"),
        ('{"id": 3000000000}', "the field id should be INT, and 3000000000 is out of its range"),
        ('{"id": 1, "tags": "a"}', "the field tags should be an array, and is the text 'a'"),
        ('{"id": 1, "at": 5}', "the field at should be an object, and is 5"),
        ('{"id": 1, "at": {"x": []}}', "the field at.x should be DOUBLE, and is an array"),
    ],
)
def test_a_record_that_does_not_fit_is_reported_with_the_reason(value, said):
    fields = parse_schema("id INT NOT NULL, tags ARRAY<STRING>, at STRUCT<x: DOUBLE>")
    assert misfit(json.loads(value), fields) == said


def test_how_avro_writes_a_record_of_nulls():
    def of(*types):
        fields = [{"name": f"f{number}", "type": each} for number, each in enumerate(types)]
        return bytes_of_nulls(json.dumps({"type": "record", "name": "r", "fields": fields}))

    assert of(["null", "int"], ["string", "null"], "null") == b"\x00\x02"
    assert of(["null", "int"], "string") is None
