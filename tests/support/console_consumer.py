"""Records of an internal topic, as Kafka's console consumer prints them with one of its formatters."""

import json

from tests.support.apache_kafka import run_tool


def formatted_records(bootstrap: str, topic: str, formatter: str, count: int) -> list[dict]:
    """The first records of partition 0. The tool prints one JSON document after the other, without a separator."""
    done = run_tool(
        "kafka-console-consumer",
        *("--bootstrap-server", bootstrap),
        *("--topic", topic, "--partition", "0", "--offset", "earliest", "--max-messages", str(count)),
        *("--formatter", f"org.apache.kafka.tools.consumer.{formatter}"),
    )
    decoder, text, found = json.JSONDecoder(), done.stdout.strip(), []
    while text:
        value, end = decoder.raw_decode(text)
        found.append(value)
        text = text[end:].lstrip()
    return found
