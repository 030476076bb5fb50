"""Every request and response that a broker may meet, one module an API, as Apache Kafka 4.3 has them."""
