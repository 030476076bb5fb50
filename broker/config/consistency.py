"""Settings that are right one by one and wrong together."""

from collections.abc import Iterator

from broker.config.names import BrokerSettings

# The first may not be larger than the second.
_IN_ORDER = (
    ("replica.fetch.wait.max.ms", "replica.socket.timeout.ms"),
    ("replica.fetch.wait.max.ms", "replica.lag.time.max.ms"),
    ("group.consumer.min.session.timeout.ms", "group.consumer.session.timeout.ms"),
    ("group.consumer.session.timeout.ms", "group.consumer.max.session.timeout.ms"),
    ("group.consumer.min.heartbeat.interval.ms", "group.consumer.heartbeat.interval.ms"),
    ("group.consumer.heartbeat.interval.ms", "group.consumer.max.heartbeat.interval.ms"),
    ("group.consumer.min.assignment.interval.ms", "group.consumer.assignment.interval.ms"),
    ("group.consumer.assignment.interval.ms", "group.consumer.max.assignment.interval.ms"),
)

_MEBIBYTE = 1024 * 1024


def contradictions(config: BrokerSettings) -> Iterator[str]:
    """A sentence for each pair or group of settings that contradict one another."""
    for smaller, larger in _IN_ORDER:
        low, high = (getattr(config, name.replace(".", "_")) for name in (smaller, larger))
        if low > high:
            yield f"{smaller} is {low}, but it must not be larger than {larger}, which is {high}"
    if config.group_consumer_heartbeat_interval_ms >= config.group_consumer_session_timeout_ms:
        yield "group.consumer.heartbeat.interval.ms must be smaller than group.consumer.session.timeout.ms"
    if config.broker_id not in (-1, config.node_id):
        yield f"node.id is {config.node_id} and broker.id is {config.broker_id}, but they must be the same"
    retention = (config.log_retention_ms, config.log_retention_minutes, config.log_retention_hours)
    if next(value for value in retention if value is not None) == 0:
        yield "log.retention.ms (or .minutes or .hours in its place) is 0, but it must be -1 or at least 1"
    if config.log_cleaner_dedupe_buffer_size <= config.log_cleaner_threads * _MEBIBYTE:
        yield "log.cleaner.dedupe.buffer.size must be more than 1048576 for each of log.cleaner.threads"
    if config.max_connections_per_ip == 0 and not config.max_connections_per_ip_overrides:
        yield "max.connections.per.ip may be 0 only if max.connections.per.ip.overrides makes exceptions"
