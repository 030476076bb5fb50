"""Pipelines on Spark, from topics to topics and files. They use the broker over the wire only: any Kafka will do."""

from barnabas.pipeline.batch import read_topic
from barnabas.pipeline.session import log_file, register, spark_session

__all__ = ["log_file", "read_topic", "register", "spark_session"]
