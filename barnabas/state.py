"""The types of `Barnabas.state`: JSON from the broker, with names that editors can complete."""

from __future__ import annotations

from typing import TypedDict


class ClockState(TypedDict):
    now_ms: int
    ahead_ms: int  # of the system's clock


class NodeState(TypedDict):
    """A broker of the cluster."""

    id: int
    address: str | None  # None: it is not running
    rack: str | None
    running: bool
    controller: bool
    isolated: bool


class PartitionState(TypedDict):
    partition: int
    leader: int  # -1: none
    replicas: list[int]
    isr: list[int]
    leader_epoch: int
    log_start_offset: int
    last_stable_offset: int
    high_watermark: int
    log_end_offset: int
    size: int  # in bytes
    segments: int
    waiting_fetches: int


class TopicState(TypedDict):
    topic_id: str
    internal: bool
    configs: dict[str, str]
    partitions: list[PartitionState]


class MemberState(TypedDict):
    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    heard_at_ms: int
    waits_for_join: bool
    waits_for_sync: bool
    protocols: list[str]
    assignment: dict[str, list[int]] | None  # None: not a consumer's


class OffsetState(TypedDict):
    topic: str
    partition: int
    offset: int
    metadata: str
    commit_timestamp: int
    lag: int | None  # None: the partition does not exist


class GroupState(TypedDict):
    state: str
    state_since_ms: int
    generation: int
    protocol_type: str | None
    protocol: str | None
    leader: str | None
    members: list[MemberState]
    pending_members: list[str]
    offsets: list[OffsetState]


class TransactionPartition(TypedDict):
    topic: str
    partition: int


class TransactionState(TypedDict):
    state: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    started_ms: int
    partitions: list[TransactionPartition]


class ProducerState(TypedDict):
    topic: str
    partition: int
    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    current_transaction_first_offset: int | None


class RequestState(TypedDict):
    api: str
    version: int
    correlation_id: int


class ConnectionState(TypedDict):
    broker: int
    peer: str
    listener: str
    client_id: str
    principal: str  # such as User:alice
    requests: list[RequestState]


class FailedAuthenticationsState(TypedDict):
    """How many clients failed to authenticate since the broker was started."""

    broker: int
    listener: str
    mechanism: str  # of SASL; "TLS" for failed handshakes, "none" where no mechanism was agreed on
    count: int


class SetAsideState(TypedDict):
    """Something that failed. The broker continues without it."""

    broker: int
    kind: str
    name: str
    reason: str


class State(TypedDict):
    clock: ClockState
    nodes: list[NodeState]
    topics: dict[str, TopicState]
    groups: dict[str, GroupState]
    transactions: dict[str, TransactionState]
    producers: list[ProducerState]
    connections: list[ConnectionState]
    failed_authentications: list[FailedAuthenticationsState]
    set_aside: list[SetAsideState]
