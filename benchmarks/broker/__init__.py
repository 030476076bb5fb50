"""Barnabas against Apache Kafka: the same work on the same machine, side by side. Start reading in `run`."""
