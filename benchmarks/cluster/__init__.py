"""Three Barnabas brokers against three Apache Kafka brokers on the same machine. Start reading in `run`."""
