"""How brokers talk to each other: Kafka's own requests over connections that a broker opens itself."""
