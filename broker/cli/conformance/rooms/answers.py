"""Every API that can be asked without harm, in every version that the broker advertises: it answers, and the answer
parses to its last byte.

A request that is not named here is sent empty. That makes no sense to many APIs, and they answer with an error; what
counts is that the answer is whole.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from broker.cli.conformance import requests
from broker.cli.conformance.catalogue import Room
from broker.cli.conformance.probe import ANY_VERSION, GROUP, TRANSACTION, Probe
from broker.cli.conformance.rooms.api_versions import SOFTWARE
from broker.cli.conformance.verdict import Failed
from protocol.api import ApiKey, request_type
from protocol.codegen import default_of
from protocol.messages import add_partitions_to_txn
from protocol.messages.describe_acls import DescribeAclsRequest
from protocol.messages.describe_cluster import DescribeClusterRequest
from protocol.messages.describe_groups import DescribeGroupsRequest
from protocol.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from protocol.messages.describe_producers import DescribeProducersRequest
from protocol.messages.describe_producers import TopicRequest as ProducersTopic
from protocol.messages.describe_topic_partitions import DescribeTopicPartitionsRequest, TopicRequest
from protocol.messages.describe_transactions import DescribeTransactionsRequest
from protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from protocol.messages.list_transactions import ListTransactionsRequest
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from protocol.schema import Message, StructType, wire_types

room = Room("answers", "Every advertised API and version answers, and the answer parses whole")

STANDS_ON: Final = "Protocol guide: The Messages"

# Asked of a broker that takes them seriously, these would change the cluster, or make what cannot be removed.
UNSAFE: Final = {
    ApiKey.ADD_RAFT_VOTER,
    ApiKey.REMOVE_RAFT_VOTER,
    ApiKey.UNREGISTER_BROKER,
    ApiKey.CREATE_DELEGATION_TOKEN,
}
_TRANSACTIONAL: Final = {
    ApiKey.ADD_PARTITIONS_TO_TXN,
    ApiKey.ADD_OFFSETS_TO_TXN,
    ApiKey.END_TXN,
    ApiKey.DESCRIBE_TRANSACTIONS,
}
_OF_GROUPS: Final = {
    ApiKey.OFFSET_COMMIT,
    ApiKey.OFFSET_FETCH,
    ApiKey.JOIN_GROUP,
    ApiKey.SYNC_GROUP,
    ApiKey.HEARTBEAT,
    ApiKey.LEAVE_GROUP,
    ApiKey.DESCRIBE_GROUPS,
    ApiKey.DELETE_GROUPS,
    ApiKey.OFFSET_DELETE,
    ApiKey.TXN_OFFSET_COMMIT,
}

# Given the probe, the version and the name of a topic with a record in it.
Make = Callable[[Probe, int, str], Message]


def _transaction(probe: Probe, version: int, topic: str) -> Message:
    """Of a transactional id that does not exist, in either shape of the request."""
    asked = add_partitions_to_txn.AddPartitionsToTxnTopic(name=topic, partitions=[0])
    return add_partitions_to_txn.AddPartitionsToTxnRequest(
        transactions=[
            add_partitions_to_txn.AddPartitionsToTxnTransaction(
                transactional_id=probe.name(), producer_id=1, producer_epoch=0, topics=[asked], verify_only=True
            )
        ],
        v3_and_below_transactional_id=probe.name(),
        v3_and_below_topics=[asked],
    )


def _txn_offset_commit(probe: Probe, version: int, topic: str) -> Message:
    partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata=None)
    return TxnOffsetCommitRequest(
        transactional_id=probe.name(),
        group_id=probe.group(),
        producer_id=1,
        producer_epoch=0,
        topics=[TxnOffsetCommitRequestTopic(name=topic, partitions=[partition])],
    )


def _join(probe: Probe, version: int, topic: str) -> Message:
    return requests.join(probe.group(), "nobody")


MAKE: Final[dict[ApiKey, Make]] = {
    ApiKey.PRODUCE: lambda p, v, t: requests.produce((p.reference(t, v >= 13), 0, requests.batch(b"one"))),
    ApiKey.FETCH: lambda p, v, t: requests.fetch((p.reference(t, v >= 13), 0, 0)),
    ApiKey.LIST_OFFSETS: lambda p, v, t: requests.list_offsets((t, 0, requests.LATEST)),
    ApiKey.METADATA: lambda p, v, t: MetadataRequest(
        topics=[MetadataRequestTopic(name=t)], allow_auto_topic_creation=False
    ),
    ApiKey.OFFSET_COMMIT: lambda p, v, t: requests.commit(p.group(), (p.reference(t, v >= 10), 0, 1)),
    ApiKey.OFFSET_FETCH: lambda p, v, t: requests.fetch_offsets(v, p.group(), [(p.reference(t, v >= 10), [0])]),
    ApiKey.FIND_COORDINATOR: lambda p, v, t: requests.find_coordinator(v, p.name()),
    ApiKey.JOIN_GROUP: _join,
    ApiKey.SYNC_GROUP: lambda p, v, t: requests.sync(p.group(), "nobody", 1),
    ApiKey.HEARTBEAT: lambda p, v, t: requests.heartbeat(p.group(), "nobody", 1),
    ApiKey.LEAVE_GROUP: lambda p, v, t: requests.leave(v, p.group(), ("nobody", None)),
    ApiKey.DESCRIBE_GROUPS: lambda p, v, t: DescribeGroupsRequest(
        groups=[p.group()], include_authorized_operations=True
    ),
    ApiKey.DELETE_GROUPS: lambda p, v, t: requests.delete_groups(p.group()),
    ApiKey.API_VERSIONS: lambda p, v, t: SOFTWARE,
    ApiKey.CREATE_TOPICS: lambda p, v, t: requests.create(requests.new_topic(p.name(), 1, 1), validate_only=True),
    ApiKey.DELETE_TOPICS: lambda p, v, t: requests.delete_topics(p.name()),
    ApiKey.CREATE_PARTITIONS: lambda p, v, t: requests.grow(t, 2, validate_only=True),
    ApiKey.DELETE_RECORDS: lambda p, v, t: requests.delete_records(t, 0, 0),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: lambda p, v, t: requests.epoch_end(t, 0, 0),
    ApiKey.INIT_PRODUCER_ID: lambda p, v, t: requests.init_producer_id(None),
    ApiKey.ADD_PARTITIONS_TO_TXN: _transaction,
    ApiKey.TXN_OFFSET_COMMIT: _txn_offset_commit,
    ApiKey.DESCRIBE_CONFIGS: lambda p, v, t: requests.describe_configs(t, synonyms=True),
    ApiKey.ALTER_CONFIGS: lambda p, v, t: requests.replace_configs(t, ("retention.ms", "1"), validate_only=True),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: lambda p, v, t: requests.alter_configs(
        t, (requests.SET, "retention.ms", "1"), validate_only=True
    ),
    ApiKey.DESCRIBE_LOG_DIRS: lambda p, v, t: DescribeLogDirsRequest(
        topics=[DescribableLogDirTopic(topic=t, partitions=[0])]
    ),
    ApiKey.DESCRIBE_PRODUCERS: lambda p, v, t: DescribeProducersRequest(
        topics=[ProducersTopic(name=t, partition_indexes=[0])]
    ),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: lambda p, v, t: DescribeTopicPartitionsRequest(topics=[TopicRequest(name=t)]),
    ApiKey.DESCRIBE_CLUSTER: lambda p, v, t: DescribeClusterRequest(include_cluster_authorized_operations=True),
    ApiKey.DESCRIBE_TRANSACTIONS: lambda p, v, t: DescribeTransactionsRequest(transactional_ids=[p.name()]),
    ApiKey.LIST_TRANSACTIONS: lambda p, v, t: ListTransactionsRequest(state_filters=["Bogus"], producer_id_filters=[]),
    ApiKey.ELECT_LEADERS: lambda p, v, t: ElectLeadersRequest(
        topic_partitions=[TopicPartitions(topic=t, partitions=[0])], timeout_ms=requests.TIMEOUT_MS
    ),
    ApiKey.DESCRIBE_ACLS: lambda p, v, t: DescribeAclsRequest(
        resource_type_filter=1,
        resource_name_filter=None,
        pattern_type_filter=1,
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
    ),
}


def empty(struct: StructType) -> Any:
    """A message, or a part of one, with nothing in it."""
    values: dict[str, Any] = {}
    types = wire_types(struct)
    for name, spec in struct.fields.items():
        if not spec.required:
            continue
        kind = types[name]
        if isinstance(kind, StructType):
            values[name] = empty(kind)
        else:
            values[name] = [] if isinstance(kind, list) else default_of(spec, kind)
    return struct(**values)


def ask_all_versions(key: ApiKey, probe: Probe) -> None:
    make = MAKE.get(key)
    message = empty(request_type(key)) if make is None else None
    topic = ""
    if make is not None and key != ApiKey.API_VERSIONS:
        topic = probe.topic()
        if ApiKey.PRODUCE in probe.target.versions:
            probe.append(topic, b"one")
    node = _where(key, probe, topic)
    for version in probe.versions(key):
        request = message if make is None else make(probe, version, topic)
        assert request is not None
        # A broker may hang up after an answer that was an error, so every version has a connection of its own.
        wire = probe.connect(probe.target.nodes.get(node))
        try:
            wire.ask(key, request, version)
        except Failed as failure:
            probe.require(False, failure.expected, failure.seen)
        probe.require(True, f"a whole answer to v{version}", "one came")
        wire.close()
    theirs, ours = probe.target.versions[key], request_type(key).versions
    if theirs.highest > ours.highest:
        unknown = f"v{ours.highest + 1} to v{theirs.highest} are newer than this tool"
        probe.require(True, "every advertised version to be asked", unknown)


def _where(key: ApiKey, probe: Probe, topic: str) -> int:
    """The broker to ask: one that is not the right one answers too, but says less."""
    if key in _OF_GROUPS and ApiKey.FIND_COORDINATOR in probe.target.versions:
        return probe.coordinator(probe.group(), GROUP)
    if key in _TRANSACTIONAL and ApiKey.FIND_COORDINATOR in probe.target.versions:
        return probe.coordinator(probe.name(), TRANSACTION)
    return probe.leader(topic)


for _key in ApiKey:
    if _key not in UNSAFE:
        room.add(
            _key.name.lower().replace("_", "-"),
            f"{_key.api_name} is answered in every advertised version, whole and without a byte over.",
            STANDS_ON,
            partial(ask_all_versions, _key),
            {_key: ANY_VERSION},
        )
