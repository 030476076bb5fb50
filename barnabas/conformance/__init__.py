"""Protocol checks for any Kafka broker: the catalogue, the runner and the reports."""
