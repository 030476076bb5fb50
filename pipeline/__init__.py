"""Pipelines on Spark, from topics to topics and files. The broker is reached over the wire only: any Kafka will do."""

from pipeline.batch import read_topic
from pipeline.session import log_file, register, spark_session

__all__ = ["log_file", "read_topic", "register", "spark_session"]
