"""Pipelines on Spark, from topics to topics and files. The broker is reached over the wire only: any Kafka will do."""
