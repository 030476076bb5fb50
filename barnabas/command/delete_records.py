"""`barnabas topics delete-records`: delete the oldest records of partitions."""

from __future__ import annotations

import argparse
from typing import Final

from barnabas.client.client import Client
from barnabas.client.errors import BrokerError, check
from barnabas.client.offsets import begin_and_end
from barnabas.client.requests.admin import delete_records
from barnabas.command import positions
from barnabas.command.table import as_json, render
from barnabas.command.values import partitions
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.delete_records import DeleteRecordsResponse
from barnabas.protocol.topic_partition import TopicPartition

# The answer has no text of its own.
_REASONS: Final[dict[int, str]] = {
    ErrorCode.POLICY_VIOLATION: "records can be deleted only if the topic's cleanup.policy includes delete",
}
_COLUMNS: Final = {
    "topic": "TOPIC",
    "partition": "PARTITION",
    "log_start_offset": "LOG-START-OFFSET",
    "log_end_offset": "LOG-END-OFFSET",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("topics", metavar="TOPIC", nargs=1)
    parser.add_argument("-p", "--partition", metavar="0,1,2", type=partitions, help="only these partitions")
    parser.add_argument(
        "--before",
        metavar="POSITION",
        type=positions.position,
        required=True,
        help=f"delete the records before this one: {positions.EXPLAINED}",
    )


def delete(client: Client, options: argparse.Namespace) -> int:
    (topic,) = options.topics
    existing = client.partitions([topic])
    chosen = sorted(existing)
    if options.partition is not None:
        chosen = [TopicPartition(topic, index) for index in options.partition]
    for each in chosen:
        if each not in existing:
            raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"partition {each}")
    starts = _delete_before(client, positions.resolve(client, options.before, chosen))
    ends = begin_and_end(client, chosen)
    rows = [
        {
            "topic": each.topic,
            "partition": each.partition,
            "log_start_offset": starts[each],
            "log_end_offset": ends[each][1],
        }
        for each in chosen
    ]
    print(as_json(rows) if options.json else render(_COLUMNS, rows))
    return 0


def _delete_before(client: Client, offsets: dict[TopicPartition, int]) -> dict[TopicPartition, int]:
    """Where the partitions begin now. Safe to try again: deleting twice is the same as deleting once."""

    def attempt() -> dict[TopicPartition, int]:
        leaders = client.leaders(list(offsets))
        starts = {}
        for leader in sorted(set(leaders.values())):
            parts = [(*each, offset) for each, offset in sorted(offsets.items()) if leaders[each] == leader]
            request = delete_records(*parts, timeout_ms=int(client.timeout * 1000))
            for topic in client.broker(leader).ask(request, DeleteRecordsResponse).topics:
                for found in topic.partitions:
                    partition = TopicPartition(topic.name, found.partition_index)
                    check(found.error_code, f"partition {partition}", _REASONS.get(found.error_code))
                    starts[partition] = found.low_watermark
        return starts

    return client.settled(attempt)
