"""Every request and response of Apache Kafka 4.3, one module per API."""
