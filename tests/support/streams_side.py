"""One of two brokers to which a story of streams groups is played."""

from barnabas.client.requests import admin, streams
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.streams_group_heartbeat import Status
from tests.support.group_side import GroupSide
from tests.support.polling import pause

STALE_TOPOLOGY, MISSING_SOURCES, WRONG_PARTITIONS, MISSING_INTERNAL, SHUTDOWN, DELAYED = range(6)


class StreamsSide(GroupSide):
    def stream(self, who, epoch, **fields):
        """A heartbeat. Members choose their ids: their names."""
        return self.streamed(
            streams.streams_group_heartbeat(self.group, self.ids.setdefault(who, who), epoch, **fields)
        )

    def streamed(self, message):
        return self.ask(ApiKey.STREAMS_GROUP_HEARTBEAT, message, 0)

    def source(self, name, partitions=3):
        """A topic with so many partitions that the coordinator knows."""
        if not self.has_topic(name, partitions):
            self.create_topic(name, partitions)
            group, self.group = self.group, f"reads-{name}"
            while not self.beat("reader", 0, topics=[name]).assignment.topic_partitions:
                self.beat("reader", -1)
                pause()
            self.beat("reader", -1)
            del self.ids["reader"]
            self.group = group
        return name

    def ready(self, who, epoch):
        """Wait until the application's own topics are there; the epoch and the answer after that."""
        while True:
            answer = self.stream(who, epoch, active={})
            epoch = answer.member_epoch
            if all(status.status_code != MISSING_INTERNAL for status in answer.status):
                return answer
            pause()

    def streams_described(self, *groups, operations=False):
        message = streams.streams_group_describe(*(groups or [self.group]), operations=operations)
        return self.ask(ApiKey.STREAMS_GROUP_DESCRIBE, message, 0)

    def set_for_group(self, name, value):
        """Alter a setting of the group; when the coordinator knows it is for the story to find out."""
        request = admin.incremental_alter_configs((admin.GROUP, self.group, [(admin.SET, name, value)]))
        return self.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, request, 1)

    def comparable(self, value):
        if isinstance(value, Status) and value.status_code in (STALE_TOPOLOGY, SHUTDOWN, DELAYED):
            return {"status_code": value.status_code, "status_detail": "some words"}
        return super().comparable(value)
