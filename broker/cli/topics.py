"""`barnabas topics`: list, create, describe, delete and alter topics."""

from __future__ import annotations

import argparse
import base64
from typing import Any, Final

from broker.cli.arguments import add_action, assignment, at_least, client
from broker.cli.client.client import Client, TopicPartition
from broker.cli.client.errors import BrokerError, check
from broker.cli.client.offsets import begin_and_end
from broker.cli.ending import UsageError, complain, ends_quietly
from broker.cli.table import as_json, render
from protocol.errors import ErrorCode
from protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from protocol.messages.metadata import MetadataResponseTopic
from protocol.schema import ZERO_UUID

_TOPIC: Final = 2  # the resource type
_SET: Final = 0
_DELETE: Final = 1
_BROKERS_CHOICE: Final = -1

_SOURCES: Final = {
    1: "topic",
    2: "broker",
    3: "cluster",
    4: "server.properties",
    5: "default",
    6: "broker logger",
    7: "client metrics",
    8: "group",
}
_SET_ON_THE_TOPIC: Final = 1

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
_CONFIGS: Final = {"name": "CONFIG", "value": "VALUE", "source": "SET-BY"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(title="actions", dest="action", metavar="ACTION", required=True)

    list_ = add_action(actions, "list", _list, "list all topics")
    list_.add_argument("--exclude-internal", action="store_true", help="leave out topics that the broker itself uses")

    create = add_action(actions, "create", _create, "create topics")
    create.add_argument("topics", metavar="TOPIC", nargs="+")
    create.add_argument("--partitions", metavar="N", type=at_least(1), default=_BROKERS_CHOICE)
    create.add_argument("--replication-factor", metavar="N", type=at_least(1), default=_BROKERS_CHOICE)
    create.add_argument("--config", metavar="KEY=VALUE", type=assignment, action="append", default=[])
    create.add_argument("--if-not-exists", action="store_true", help="a topic that exists is no error")

    describe = add_action(actions, "describe", _describe, "show partitions, leaders, offsets and settings")
    describe.add_argument("topics", metavar="TOPIC", nargs="*", help="all if none is named")
    describe.add_argument("--all-configs", action="store_true", help="defaults too, not only what was set on the topic")

    delete = add_action(actions, "delete", _delete, "delete topics with all their records")
    delete.add_argument("topics", metavar="TOPIC", nargs="+")
    delete.add_argument("--if-exists", action="store_true", help="a topic that does not exist is no error")

    alter = add_action(actions, "alter", _alter, "add partitions, change settings")
    alter.add_argument("topics", metavar="TOPIC", nargs=1)
    alter.add_argument("--partitions", metavar="N", type=at_least(1), help="how many there shall be, more than now")
    alter.add_argument("--set", metavar="KEY=VALUE", type=assignment, action="append", default=[])
    alter.add_argument("--unset", metavar="KEY", action="append", default=[], help="back to the broker's default")


@ends_quietly
def run(options: argparse.Namespace) -> int:
    with client(options) as connected:
        status: int = options.act(connected, options)
    return status


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
    request = CreateTopicsRequest(
        topics=[
            CreatableTopic(
                name=name,
                num_partitions=options.partitions,
                replication_factor=options.replication_factor,
                assignments=[],
                configs=[CreatableTopicConfig(name=key, value=value) for key, value in options.config],
            )
            for name in options.topics
        ],
        timeout_ms=int(options.timeout * 1000),
    )
    answer = client.controller().ask(request, CreateTopicsResponse)
    allowed = {ErrorCode.TOPIC_ALREADY_EXISTS} if options.if_not_exists else set()
    results = [(topic.name, topic.error_code, topic.error_message) for topic in answer.topics]
    return _report("created", results, allowed, options)


def _delete(client: Client, options: argparse.Namespace) -> int:
    request = DeleteTopicsRequest(
        topics=[DeleteTopicState(name=name, topic_id=ZERO_UUID) for name in options.topics],
        timeout_ms=int(options.timeout * 1000),
    )
    answer = client.controller().ask(request, DeleteTopicsResponse)
    allowed = {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION} if options.if_exists else set()
    results = [(topic.name or "", topic.error_code, topic.error_message) for topic in answer.responses]
    return _report("deleted", results, allowed, options)


def _report(
    done: str, results: list[tuple[str, int, str | None]], allowed: set[ErrorCode], options: argparse.Namespace
) -> int:
    """Say what became of each topic: one that failed does not keep the others from being done."""
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
            print(render(_CONFIGS, topic["configs"]))
    return 0


def _description(client: Client, topic: MetadataResponseTopic, all_configs: bool) -> dict[str, Any]:
    name = topic.name or ""
    # One without a leader cannot say what it holds.
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
    resource = DescribeConfigsResource(resource_type=_TOPIC, resource_name=topic, configuration_keys=None)
    answer = client.any_broker().ask(DescribeConfigsRequest(resources=[resource]), DescribeConfigsResponse)
    (found,) = answer.results
    check(found.error_code, f"topic '{topic}'", found.error_message)
    return [
        {"name": each.name, "value": each.value, "source": _SOURCES.get(each.config_source, "unknown")}
        for each in sorted(found.configs, key=lambda each: each.name)
        if all_configs or each.config_source == _SET_ON_THE_TOPIC
    ]


def _alter(client: Client, options: argparse.Namespace) -> int:
    (topic,) = options.topics
    if options.partitions is None and not options.set and not options.unset:
        raise UsageError("topics alter: nothing to change; say --partitions, --set or --unset")
    changes = [AlterableConfig(name=name, config_operation=_SET, value=value) for name, value in options.set]
    changes += [AlterableConfig(name=name, config_operation=_DELETE, value=None) for name in options.unset]
    if changes:
        resource = AlterConfigsResource(resource_type=_TOPIC, resource_name=topic, configs=changes)
        request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=False)
        (altered,) = client.controller().ask(request, IncrementalAlterConfigsResponse).responses
        check(altered.error_code, f"topic '{topic}'", altered.error_message)
    if options.partitions is not None:
        grown = CreatePartitionsTopic(name=topic, count=options.partitions, assignments=None)
        timeout_ms = int(options.timeout * 1000)
        more = CreatePartitionsRequest(topics=[grown], timeout_ms=timeout_ms, validate_only=False)
        (added,) = client.controller().ask(more, CreatePartitionsResponse).results
        check(added.error_code, f"topic '{topic}'", added.error_message)
    return _report("altered", [(topic, ErrorCode.NONE, None)], set(), options)


def _replication_factor(topic: MetadataResponseTopic) -> int:
    return max((len(each.replica_nodes) for each in topic.partitions), default=0)
