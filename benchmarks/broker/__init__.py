"""Barnabas against Apache Kafka: the same work on the same machine, side by side. Begin reading in `run`."""
