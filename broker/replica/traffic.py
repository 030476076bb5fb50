"""What went into topics and out of them since the broker started: plain numbers, from which metrics are made.

The partitions of a topic share one object. Adding to it is all that Produce and Fetch do for metrics.
"""

from __future__ import annotations


class TopicTraffic:
    """Counts of one topic on one broker, as its leader; what followers copy is counted separately."""

    __slots__ = (
        "bytes_in",
        "bytes_out",
        "failed_fetches",
        "failed_produces",
        "fetches",
        "messages_in",
        "produces",
        "replication_bytes_in",
        "replication_bytes_out",
    )

    def __init__(self) -> None:
        self.messages_in = 0
        self.bytes_in = 0
        self.bytes_out = 0
        self.produces = 0  # appends of one partition: a request may have several
        self.failed_produces = 0
        self.fetches = 0  # reads of one partition: a request that waits reads more than once
        self.failed_fetches = 0
        self.replication_bytes_in = 0
        self.replication_bytes_out = 0

    def add(self, other: TopicTraffic) -> None:
        self.messages_in += other.messages_in
        self.bytes_in += other.bytes_in
        self.bytes_out += other.bytes_out
        self.produces += other.produces
        self.failed_produces += other.failed_produces
        self.fetches += other.fetches
        self.failed_fetches += other.failed_fetches
        self.replication_bytes_in += other.replication_bytes_in
        self.replication_bytes_out += other.replication_bytes_out


class Traffic:
    """The traffic of all topics of a broker. Deleted topics stay in the total, so it never decreases."""

    def __init__(self) -> None:
        self.topics: dict[str, TopicTraffic] = {}
        self._of_deleted = TopicTraffic()

    def of(self, topic: str) -> TopicTraffic:
        found = self.topics.get(topic)
        if found is None:
            found = self.topics[topic] = TopicTraffic()
        return found

    def forget(self, topic: str) -> None:
        found = self.topics.pop(topic, None)
        if found is not None:
            self._of_deleted.add(found)

    def total(self) -> TopicTraffic:
        total = TopicTraffic()
        total.add(self._of_deleted)
        for each in self.topics.values():
            total.add(each)
        return total
