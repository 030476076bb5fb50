"""PySpark: a batch over a topic, through Spark's own Kafka connector. (`pip install '.[pipeline]'`)"""

import pytest

pytest.importorskip("pyspark")

from kafka import KafkaProducer

from barnabas.pipeline.session import spark_session

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def spark():
    """Any session with the connector will do; this one finds the connector and Java by itself."""
    session = spark_session("example", master="local[2]")
    yield session
    session.stop()


def revenue(spark, bootstrap_servers, topic):
    """The code under test: revenue per product."""
    records = (
        spark.read.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap_servers)
        .option("subscribe", topic)
        .load()
        .selectExpr("CAST(key AS STRING) AS product", "CAST(CAST(value AS STRING) AS INT) AS price")
    )
    earned = records.groupBy("product").agg({"price": "sum"}).toDF("product", "earned")
    return {row["product"]: row["earned"] for row in earned.collect()}


def test_what_was_earned(spark, kafka_broker, kafka_topic):
    producer = KafkaProducer(bootstrap_servers=kafka_broker.bootstrap_servers)
    for product, price in (("apple", 2), ("pear", 3), ("apple", 5)):
        producer.send(kafka_topic, str(price).encode(), key=product.encode())
    producer.close()
    assert revenue(spark, kafka_broker.bootstrap_servers, kafka_topic) == {"apple": 7, "pear": 3}
