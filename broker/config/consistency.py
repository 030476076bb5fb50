"""Settings that are valid one by one, but not together, not for this broker, or not at run-time."""

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from barnabas.broker.config.names import BrokerSettings
from barnabas.broker.config.values import principals

# Kafka's two authorizers keep and apply rules in the same way.
_AUTHORIZERS = (
    "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "kafka.security.authorizer.AclAuthorizer",
)

# The first must not be larger than the second.
_ORDERED_PAIRS = (
    ("replica.fetch.wait.max.ms", "replica.socket.timeout.ms"),
    ("replica.fetch.wait.max.ms", "replica.lag.time.max.ms"),
    ("group.consumer.min.session.timeout.ms", "group.consumer.session.timeout.ms"),
    ("group.consumer.session.timeout.ms", "group.consumer.max.session.timeout.ms"),
    ("group.consumer.min.heartbeat.interval.ms", "group.consumer.heartbeat.interval.ms"),
    ("group.consumer.heartbeat.interval.ms", "group.consumer.max.heartbeat.interval.ms"),
    ("group.consumer.min.assignment.interval.ms", "group.consumer.assignment.interval.ms"),
    ("group.consumer.assignment.interval.ms", "group.consumer.max.assignment.interval.ms"),
    ("group.share.min.session.timeout.ms", "group.share.session.timeout.ms"),
    ("group.share.session.timeout.ms", "group.share.max.session.timeout.ms"),
    ("group.share.min.heartbeat.interval.ms", "group.share.heartbeat.interval.ms"),
    ("group.share.heartbeat.interval.ms", "group.share.max.heartbeat.interval.ms"),
    ("group.share.min.assignment.interval.ms", "group.share.assignment.interval.ms"),
    ("group.share.assignment.interval.ms", "group.share.max.assignment.interval.ms"),
    ("group.share.min.record.lock.duration.ms", "group.share.record.lock.duration.ms"),
    ("group.share.record.lock.duration.ms", "group.share.max.record.lock.duration.ms"),
    ("group.share.min.delivery.count.limit", "group.share.delivery.count.limit"),
    ("group.share.delivery.count.limit", "group.share.max.delivery.count.limit"),
    ("group.share.min.partition.max.record.locks", "group.share.partition.max.record.locks"),
    ("group.share.partition.max.record.locks", "group.share.max.partition.max.record.locks"),
    ("group.share.max.size", "group.share.max.share.sessions"),
    ("group.streams.min.session.timeout.ms", "group.streams.session.timeout.ms"),
    ("group.streams.session.timeout.ms", "group.streams.max.session.timeout.ms"),
    ("group.streams.min.heartbeat.interval.ms", "group.streams.heartbeat.interval.ms"),
    ("group.streams.heartbeat.interval.ms", "group.streams.max.heartbeat.interval.ms"),
    ("group.streams.min.assignment.interval.ms", "group.streams.assignment.interval.ms"),
    ("group.streams.assignment.interval.ms", "group.streams.max.assignment.interval.ms"),
    ("group.streams.num.standby.replicas", "group.streams.max.standby.replicas"),
)

# By the kinds of groups that the broker assigns partitions in.
_ASSIGNORS = {"consumer": ("uniform", "range"), "share": ("simple",)}

_MEBIBYTE = 1024 * 1024

# A server.properties may say 0. Set at run-time, it would lock everybody out, including those who want to set it back.
_NOT_ZERO_AT_RUN_TIME = ("max.connections", "max.connection.creation.rate")

# As in Kafka, each step at run-time at most halves or doubles them.
_THREAD_COUNTS = ("log.cleaner.threads", "num.recovery.threads.per.data.dir", "num.replica.fetchers")

_ZOOKEEPER_SERVER: Final = re.compile(r"(?:[\w.-]+|\[[0-9A-Fa-f:.%]+\])(?::(\d{1,5}))?", re.ASCII)
_LARGEST_PORT: Final = 65535
_KAFKA_RELEASE: Final = re.compile(r"\d+(\.\d+)+(-IV\d+)?", re.ASCII)


def contradictions(config: BrokerSettings) -> Iterator[str]:
    """A sentence for each pair or group of settings that contradict each other."""
    for smaller, larger in _ORDERED_PAIRS:
        low, high = (getattr(config, name.replace(".", "_")) for name in (smaller, larger))
        if low > high:
            yield f"{smaller} is {low}, but it must not be larger than {larger}, which is {high}"
    for kind, assignors in _ASSIGNORS.items():
        interval, timeout, wanted = (
            getattr(config, f"group_{kind}_{name}")
            for name in ("heartbeat_interval_ms", "session_timeout_ms", "assignors")
        )
        if interval >= timeout:
            yield f"group.{kind}.heartbeat.interval.ms must be smaller than group.{kind}.session.timeout.ms"
        unknown = [name for name in wanted if name not in assignors]
        if unknown:
            yield f"group.{kind}.assignors names {', '.join(unknown)}, but Barnabas has only {' and '.join(assignors)}"
    if config.group_streams_heartbeat_interval_ms >= config.group_streams_session_timeout_ms:
        yield "group.streams.heartbeat.interval.ms must be smaller than group.streams.session.timeout.ms"
    if config.broker_id not in (-1, config.node_id):
        yield f"node.id is {config.node_id} and broker.id is {config.broker_id}, but they must be equal"
    if "broker" not in config.process_roles:
        yield "process.roles does not include broker, but Barnabas has no separate controllers; add broker"
    name, folders = ("log.dir", config.log_dir) if config.log_dirs is None else ("log.dirs", config.log_dirs)
    if len(folders) > 1:
        yield (
            f"{name} names {len(folders)} directories ({', '.join(folders)}), but Barnabas keeps its data in one; "
            "name the one that it should use"
        )
    retention = (config.log_retention_ms, config.log_retention_minutes, config.log_retention_hours)
    if next(value for value in retention if value is not None) == 0:
        yield "log.retention.ms (or .minutes or .hours instead of it) is 0, but it must be -1 or at least 1"
    if config.log_cleaner_dedupe_buffer_size <= config.log_cleaner_threads * _MEBIBYTE:
        yield "log.cleaner.dedupe.buffer.size must be more than 1048576 for each of log.cleaner.threads"
    yield from _problems_of_cluster(config)
    yield from _problems_of_authorization(config)
    if config.max_connections_per_ip == 0 and not config.max_connections_per_ip_overrides:
        yield "max.connections.per.ip may be 0 only if max.connections.per.ip.overrides has exceptions"


def _problems_of_cluster(config: BrokerSettings) -> Iterator[str]:
    connect = config.zookeeper_connect
    if connect is not None and not _names_zookeeper(connect):
        yield (
            f"zookeeper.connect is {connect!r}, but it must be a list of host:port separated by commas, "
            "which may end in a path: zk1:2181,zk2:2181/kafka"
        )
    version = config.inter_broker_protocol_version
    if version is not None and not _KAFKA_RELEASE.fullmatch(version):
        yield f"inter.broker.protocol.version is {version!r}, but it must be a release of Kafka, such as 3.9"


def _names_zookeeper(connect: str) -> bool:
    servers, _, path = connect.partition("/")
    for server in servers.split(","):
        match = _ZOOKEEPER_SERVER.fullmatch(server.strip())
        if match is None or int(match[1] or 0) > _LARGEST_PORT:
            return False
    return not {".", ".."} & set(path.split("/"))


def _problems_of_authorization(config: BrokerSettings) -> Iterator[str]:
    name = config.authorizer_class_name
    if name and name not in _AUTHORIZERS:
        yield (
            f"authorizer.class.name is {name}, but Barnabas cannot run authorizers written in Java; "
            f"use {' or '.join(_AUTHORIZERS)}"
        )
    for setting, is_set in (
        ("super.users", config.super_users),
        ("allow.everyone.if.no.acl.found", config.allow_everyone_if_no_acl_found),
    ):
        if is_set and not name:
            yield f"{setting} needs authorizer.class.name: without an authorizer, every client may do everything"
    for principal in principals(config.super_users):
        kind, _, user = principal.partition(":")
        if not (kind and user):  # no client could ever match it
            yield f"super.users has {principal!r}, but each principal must be like User:alice"


def lockouts(values: Mapping[str, Any], altered: Collection[str]) -> Iterator[str]:
    """A sentence for each of the altered settings whose value, given by attribute, would lock everybody out."""
    for name in _NOT_ZERO_AT_RUN_TIME:
        if name in altered and values[name.replace(".", "_")] == 0:
            yield f"{name} is 0, but an alteration must leave it at 1 or more, since nobody could connect"


def too_large_steps(present: BrokerSettings, values: Mapping[str, Any]) -> Iterator[str]:
    """A sentence for each value, given by attribute, that is too far from the current one for a single alteration."""
    for name in _THREAD_COUNTS:
        attribute = name.replace(".", "_")
        old, new = getattr(present, attribute), values[attribute]
        if new != old and not max(1, old // 2) <= new <= old * 2:
            yield f"{name} is {new}, but an alteration must leave it between half and twice its current value, {old}"
