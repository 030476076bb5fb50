"""Every API that is safe to call, in every version that the broker advertises: it responds, and the response parses
to the last byte.

Requests without an entry here are sent empty. Many APIs then return an error; what counts is that the response is
complete.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from barnabas.client.requests import admin, data, groups, lookup, transactions
from barnabas.client.requests.admin import SET, TOPIC
from barnabas.client.requests.data import LATEST
from barnabas.client.requests.lookup import GROUP, TRANSACTION
from barnabas.client.requests.records import batch
from barnabas.conformance.catalogue import Room
from barnabas.conformance.probe import ANY_VERSION, Probe
from barnabas.conformance.rooms.api_versions import SOFTWARE
from barnabas.conformance.verdict import Failed
from barnabas.protocol.api import ApiKey, request_type
from barnabas.protocol.codegen import default_of
from barnabas.protocol.messages.describe_acls import DescribeAclsRequest
from barnabas.protocol.messages.describe_cluster import DescribeClusterRequest
from barnabas.protocol.messages.describe_groups import DescribeGroupsRequest
from barnabas.protocol.messages.describe_transactions import DescribeTransactionsRequest
from barnabas.protocol.messages.list_transactions import ListTransactionsRequest
from barnabas.protocol.schema import Message, StructType, wire_types

room = Room("answers", "Every advertised API and version returns a response that parses completely")

STANDS_ON: Final = "Protocol guide: The Messages"

# These could change the cluster, or create something that cannot be removed.
UNSAFE: Final = {
    ApiKey.ADD_RAFT_VOTER,
    ApiKey.REMOVE_RAFT_VOTER,
    ApiKey.UNREGISTER_BROKER,
    ApiKey.CREATE_DELEGATION_TOKEN,
    # Brokers send these to each other.
    ApiKey.LEADER_AND_ISR,
    ApiKey.STOP_REPLICA,
    ApiKey.UPDATE_METADATA,
    ApiKey.CONTROLLED_SHUTDOWN,
    ApiKey.ALTER_PARTITION,
    ApiKey.ALLOCATE_PRODUCER_IDS,
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

# Called with the probe, the version and the name of a topic that holds a record.
Make = Callable[[Probe, int, str], Message]


def _transaction(probe: Probe, version: int, topic: str) -> Message:
    """A request about a transactional id that does not exist."""
    return transactions.add_partitions_to_txn(version, probe.name(), 1, 0, (topic, 0), verify_only=True)


def _join(probe: Probe, version: int, topic: str) -> Message:
    return groups.join_group(probe.group(), "nobody")


MAKE: Final[dict[ApiKey, Make]] = {
    ApiKey.PRODUCE: lambda p, v, t: data.produce((p.reference(t, v >= 13), 0, batch(b"one"))),
    ApiKey.FETCH: lambda p, v, t: data.fetch((p.reference(t, v >= 13), 0, 0)),
    ApiKey.LIST_OFFSETS: lambda p, v, t: data.list_offsets((t, 0, LATEST)),
    ApiKey.METADATA: lambda p, v, t: lookup.metadata([t]),
    ApiKey.OFFSET_COMMIT: lambda p, v, t: groups.offset_commit(p.group(), (p.reference(t, v >= 10), 0, 1)),
    ApiKey.OFFSET_FETCH: lambda p, v, t: groups.offset_fetch(v, {p.group(): [(p.reference(t, v >= 10), [0])]}),
    ApiKey.FIND_COORDINATOR: lambda p, v, t: lookup.find_coordinator(v, p.name()),
    ApiKey.JOIN_GROUP: _join,
    ApiKey.SYNC_GROUP: lambda p, v, t: groups.sync_group(p.group(), "nobody", 1, **groups.BY_RANGE),
    ApiKey.HEARTBEAT: lambda p, v, t: groups.heartbeat(p.group(), "nobody", 1),
    ApiKey.LEAVE_GROUP: lambda p, v, t: groups.leave_group(v, p.group(), ("nobody", None)),
    ApiKey.DESCRIBE_GROUPS: lambda p, v, t: DescribeGroupsRequest(
        groups=[p.group()], include_authorized_operations=True
    ),
    ApiKey.DELETE_GROUPS: lambda p, v, t: groups.delete_groups(p.group()),
    ApiKey.API_VERSIONS: lambda p, v, t: SOFTWARE,
    ApiKey.CREATE_TOPICS: lambda p, v, t: admin.create_topics(admin.new_topic(p.name(), 1, 1), validate_only=True),
    ApiKey.DELETE_TOPICS: lambda p, v, t: admin.delete_topics(p.name()),
    ApiKey.CREATE_PARTITIONS: lambda p, v, t: admin.create_partitions((t, 2), validate_only=True),
    ApiKey.DELETE_RECORDS: lambda p, v, t: admin.delete_records((t, 0, 0)),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: lambda p, v, t: data.offset_for_leader_epoch((t, 0, 0)),
    ApiKey.INIT_PRODUCER_ID: lambda p, v, t: transactions.init_producer_id(None),
    ApiKey.ADD_PARTITIONS_TO_TXN: _transaction,
    ApiKey.TXN_OFFSET_COMMIT: lambda p, v, t: transactions.txn_offset_commit(p.name(), p.group(), 1, 0, (t, 0, 1)),
    ApiKey.DESCRIBE_CONFIGS: lambda p, v, t: admin.describe_configs((TOPIC, t), synonyms=True),
    ApiKey.ALTER_CONFIGS: lambda p, v, t: admin.alter_configs((TOPIC, t, [("retention.ms", "1")]), validate_only=True),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: lambda p, v, t: admin.incremental_alter_configs(
        (TOPIC, t, [(SET, "retention.ms", "1")]), validate_only=True
    ),
    ApiKey.DESCRIBE_LOG_DIRS: lambda p, v, t: admin.describe_log_dirs((t, [0])),
    ApiKey.DESCRIBE_PRODUCERS: lambda p, v, t: admin.describe_producers((t, [0])),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: lambda p, v, t: admin.describe_topic_partitions(t),
    ApiKey.DESCRIBE_CLUSTER: lambda p, v, t: DescribeClusterRequest(include_cluster_authorized_operations=True),
    ApiKey.DESCRIBE_TRANSACTIONS: lambda p, v, t: DescribeTransactionsRequest(transactional_ids=[p.name()]),
    ApiKey.LIST_TRANSACTIONS: lambda p, v, t: ListTransactionsRequest(state_filters=["Bogus"], producer_id_filters=[]),
    ApiKey.ELECT_LEADERS: lambda p, v, t: admin.elect_leaders((t, [0])),
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
        # A broker may close the connection after an error, so every version gets its own connection.
        wire = probe.connect(probe.target.nodes.get(node))
        try:
            wire.ask(key, request, version)
        except Failed as failure:
            probe.require(False, failure.expected, failure.seen)
        probe.require(True, f"a complete response to v{version}", "one came")
        wire.close()
    theirs, ours = probe.target.versions[key], request_type(key).versions
    if theirs.highest > ours.highest:
        unknown = f"v{ours.highest + 1} to v{theirs.highest} are newer than this tool"
        probe.require(True, "every advertised version to be tested", unknown)


def _where(key: ApiKey, probe: Probe, topic: str) -> int:
    """The broker to send this to. Any broker responds, but the right one says more."""
    if key in _OF_GROUPS and ApiKey.FIND_COORDINATOR in probe.target.versions:
        return probe.coordinator(probe.group(), GROUP)
    if key in _TRANSACTIONAL and ApiKey.FIND_COORDINATOR in probe.target.versions:
        return probe.coordinator(probe.name(), TRANSACTION)
    return probe.leader(topic)


for _key in ApiKey:
    if _key not in UNSAFE:
        room.add(
            _key.name.lower().replace("_", "-"),
            f"{_key.api_name} gets a complete response in every advertised version, with no bytes left over.",
            STANDS_ON,
            partial(ask_all_versions, _key),
            {_key: ANY_VERSION},
        )
