"""`barnabas topics`: list, create, describe, alter and delete topics."""

from __future__ import annotations

import argparse
import base64
from typing import Any, Final

from barnabas.client.client import Client
from barnabas.client.config_admin import alter_settings, settings_of
from barnabas.client.errors import BrokerError, check
from barnabas.client.offsets import begin_and_end
from barnabas.client.requests.admin import create_partitions, create_topics, delete_topics, new_topic
from barnabas.command import delete_records
from barnabas.command.arguments import add_action, add_client_actions
from barnabas.command.configs import SETTING_COLUMNS
from barnabas.command.ending import UsageError, complain
from barnabas.command.table import as_json, render
from barnabas.command.values import assignment, at_least
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.create_partitions import CreatePartitionsResponse
from barnabas.protocol.messages.create_topics import CreateTopicsResponse
from barnabas.protocol.messages.delete_topics import DeleteTopicsResponse
from barnabas.protocol.messages.metadata import MetadataResponseTopic
from barnabas.protocol.topic_partition import TopicPartition

_BROKERS_CHOICE: Final = -1

_LISTED: Final = {
    "topic": "TOPIC",
    "partitions": "PARTITIONS",
    "replication_factor": "REPLICATION-FACTOR",
    "internal": "INTERNAL",
}
_PARTITIONS: Final = {
    "partition": "PARTITION",
    "leader": "LEADER",
    "leader_epoch": "LEADER-EPOCH",
    "replicas": "REPLICAS",
    "in_sync_replicas": "IN-SYNC",
    "log_start_offset": "LOG-START-OFFSET",
    "log_end_offset": "LOG-END-OFFSET",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = add_client_actions(parser)

    list_ = add_action(actions, "list", _list, "list all topics")
    list_.add_argument(
        "--exclude-internal", action="store_true", help="leave out the topics that brokers use themselves"
    )

    create = add_action(actions, "create", _create, "create topics")
    create.add_argument("topics", metavar="TOPIC", nargs="+")
    create.add_argument(
        "-p", "--partitions", metavar="N", type=at_least(1), default=_BROKERS_CHOICE, help="(default: the broker's)"
    )
    create.add_argument(
        "-r",
        "--replication-factor",
        metavar="N",
        type=at_least(1),
        default=_BROKERS_CHOICE,
        help="(default: the broker's)",
    )
    create.add_argument(
        "--config", metavar="KEY=VALUE", type=assignment, action="append", default=[], help="a setting; may be repeated"
    )
    create.add_argument("--if-not-exists", action="store_true", help="an existing topic is not an error")

    describe = add_action(actions, "describe", _describe, "show partitions, leaders, offsets and settings")
    describe.add_argument("topics", metavar="TOPIC", nargs="*", help="(default: all topics)")
    describe.add_argument("--all-configs", action="store_true", help="all settings, not only those set on the topic")

    delete = add_action(actions, "delete", _delete, "delete topics with all their records")
    delete.add_argument("topics", metavar="TOPIC", nargs="+")
    delete.add_argument("--if-exists", action="store_true", help="a missing topic is not an error")

    records = add_action(actions, "delete-records", delete_records.delete, "delete the oldest records of a topic")
    delete_records.add_arguments(records)

    alter = add_action(actions, "alter", _alter, "add partitions, change settings")
    alter.add_argument("topics", metavar="TOPIC", nargs=1)
    alter.add_argument("-p", "--partitions", metavar="N", type=at_least(1), help="the new number, larger than now")
    alter.add_argument(
        "--config", metavar="KEY=VALUE", type=assignment, action="append", default=[], help="a setting; may be repeated"
    )
    alter.add_argument(
        "--delete-config",
        metavar="KEY",
        action="append",
        default=[],
        help="back to the broker's default; may be repeated",
    )


def _list(client: Client, options: argparse.Namespace) -> int:
    rows = [
        {
            "topic": topic.name,
            "partitions": len(topic.partitions),
            "replication_factor": _replication_factor(topic),
            "internal": topic.is_internal,
        }
        for topic in client.topics(None)
        if not (topic.is_internal and options.exclude_internal)
    ]
    print(as_json(rows) if options.json else render(_LISTED, rows))
    return 0


def _create(client: Client, options: argparse.Namespace) -> int:
    topics = [
        new_topic(name, options.partitions, options.replication_factor, configs=options.config)
        for name in options.topics
    ]
    request = create_topics(*topics, timeout_ms=int(client.timeout * 1000))
    answer = client.controller().ask(request, CreateTopicsResponse)
    allowed = {ErrorCode.TOPIC_ALREADY_EXISTS} if options.if_not_exists else set()
    results = [(topic.name, topic.error_code, topic.error_message) for topic in answer.topics]
    return _report("created", results, allowed, options)


def _delete(client: Client, options: argparse.Namespace) -> int:
    request = delete_topics(*options.topics, timeout_ms=int(client.timeout * 1000))
    answer = client.controller().ask(request, DeleteTopicsResponse)
    allowed = {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION} if options.if_exists else set()
    results = [(topic.name or "", topic.error_code, topic.error_message) for topic in answer.responses]
    return _report("deleted", results, allowed, options)


def _report(
    done: str, results: list[tuple[str, int, str | None]], allowed: set[ErrorCode], options: argparse.Namespace
) -> int:
    """Say what happened to each topic. One that failed does not stop the others."""
    failed = False
    rows = []
    for name, code, message in sorted(results):
        error = BrokerError(code, f"topic '{name}'", message) if code and code not in allowed else None
        rows.append({"topic": name, done: not code, "error": str(error) if error else None})
        if error:
            complain(error)
            failed = True
        elif not options.json:
            print(f"{done} topic '{name}'" if not code else f"topic '{name}' was not {done}: nothing to do")
    if options.json:
        print(as_json(rows))
    return 1 if failed else 0


def _describe(client: Client, options: argparse.Namespace) -> int:
    topics = client.topics(options.topics or None)
    described = [_description(client, topic, options.all_configs) for topic in topics]
    if options.json:
        print(as_json(described))
        return 0
    for number, topic in enumerate(described):
        if number:
            print()
        internal = ", internal" if topic["internal"] else ""
        print(f"Topic {topic['topic']}  (id {topic['topic_id']}{internal})")
        print(render(_PARTITIONS, topic["partitions"]))
        if topic["configs"]:
            print(render(SETTING_COLUMNS, topic["configs"]))
    return 0


def _description(client: Client, topic: MetadataResponseTopic, all_configs: bool) -> dict[str, Any]:
    name = topic.name or ""
    # A partition without a leader cannot tell its offsets.
    led = [TopicPartition(name, each.partition_index) for each in topic.partitions if each.leader_id >= 0]
    offsets = begin_and_end(client, led)
    partitions = []
    for each in sorted(topic.partitions, key=lambda each: each.partition_index):
        begin, end = offsets.get(TopicPartition(name, each.partition_index), (None, None))
        partitions.append(
            {
                "partition": each.partition_index,
                "leader": each.leader_id if each.leader_id >= 0 else None,
                "leader_epoch": each.leader_epoch,
                "replicas": each.replica_nodes,
                "in_sync_replicas": each.isr_nodes,
                "log_start_offset": begin,
                "log_end_offset": end,
            }
        )
    return {
        "topic": name,
        "topic_id": base64.urlsafe_b64encode(topic.topic_id).decode().rstrip("="),
        "internal": topic.is_internal,
        "replication_factor": _replication_factor(topic),
        "partitions": partitions,
        "configs": _configs(client, name, all_configs),
    }


def _configs(client: Client, topic: str, all_configs: bool) -> list[dict[str, Any]]:
    return [
        {"name": each.name, "value": each.value, "source": each.source}
        for each in settings_of(client, "topic", topic)
        if all_configs or each.source == "topic"
    ]


def _alter(client: Client, options: argparse.Namespace) -> int:
    (topic,) = options.topics
    if options.partitions is None and not options.config and not options.delete_config:
        raise UsageError("topics alter: nothing to change; add --partitions, --config or --delete-config")
    if options.config or options.delete_config:
        alter_settings(client, "topic", topic, put=dict(options.config), delete=options.delete_config)
    if options.partitions is not None:
        request = create_partitions((topic, options.partitions), timeout_ms=int(client.timeout * 1000))
        (added,) = client.controller().ask(request, CreatePartitionsResponse).results
        check(added.error_code, f"topic '{topic}'", added.error_message)
    return _report("altered", [(topic, ErrorCode.NONE, None)], set(), options)


def _replication_factor(topic: MetadataResponseTopic) -> int:
    return max((len(each.replica_nodes) for each in topic.partitions), default=0)
