"""What the console may change, where it may: topics, messages and groups. Each takes the body of a request."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from barnabas.broker.console.errors import Conflict, ConsoleError, NotFound
from barnabas.broker.console.messages import Messages, at_time
from barnabas.broker.controller.create_topics import NewTopic
from barnabas.broker.controller.delete_topics import TopicReference
from barnabas.broker.group.kind import Committer
from barnabas.broker.group.records import CommittedOffset
from barnabas.broker.testing.nodes import known_everywhere, term_of
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records.builder import NewRecord, build_batch
from barnabas.protocol.topic_partition import TopicPartition
from barnabas.storage.write import AppendResult, Refusal

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.local_cluster import LocalCluster
    from barnabas.broker.replica.partition import Partition

_NOBODY: Final = Committer("", None, -1)  # an administrator, who is in no group
_SECONDS: Final = 30.0


class Changes:
    def __init__(self, cluster: LocalCluster, messages: Messages) -> None:
        self._cluster = cluster
        self._messages = messages

    # --- topics ---

    async def create_topic(self, body: dict[str, Any]) -> Any:
        name, partitions = _text(body, "name"), body.get("partitions", -1)
        if not isinstance(partitions, int) or isinstance(partitions, bool):
            raise ConsoleError("'partitions' is a number")
        (result,) = await term_of(self._cluster).create_topics([NewTopic(name, partitions, -1, configs={})])
        if result.error_code:
            raise Conflict(result.error_message or result.error_code.name)
        await known_everywhere(self._cluster, name)
        return {"name": name, "partitions": result.num_partitions}

    async def delete_topic(self, body: dict[str, Any]) -> Any:
        name = _text(body, "name")
        (result,) = await term_of(self._cluster).delete_topics([TopicReference(name)])
        if result.error_code:
            raise Conflict(f"{name} was not deleted: {result.error_code.name}")
        return {"name": name}

    # --- messages ---

    async def produce(self, body: dict[str, Any]) -> Any:
        topic, index = _text(body, "topic"), body.get("partition", 0)
        key, value = body.get("key"), body.get("value")
        if not isinstance(index, int) or not isinstance(key, str | None) or not isinstance(value, str | None):
            raise ConsoleError("'partition' is a number, 'key' and 'value' are texts or null")
        (partition,) = self._messages.partitions(topic, str(index)) or (None,)
        if partition is None or partition.leadership is None:
            raise Conflict(f"partition {index} of {topic} is not led here")
        if partition.is_internal:
            raise Conflict(f"{topic} belongs to the broker")
        record = NewRecord(self._cluster.clock.now_ms(), _bytes(key), _bytes(value))
        waiting = _Append()
        partition.append_soon(memoryview(build_batch([record])), waiting, None)
        result = await asyncio.wait_for(waiting.result, _SECONDS)
        if not isinstance(result, AppendResult):
            raise Conflict(f"the broker refused it: {result}")
        return {"partition": index, "offset": result.base_offset}

    # --- groups ---

    def _coordinator(self, group_id: str) -> Broker:
        for broker in self._cluster.brokers:
            if any(group_id in shard.groups for shard in broker.groups.shards):
                return broker
        raise NotFound(f"there is no group {group_id!r}")

    async def delete_group(self, body: dict[str, Any]) -> Any:
        name = _text(body, "name")
        done = _Done()
        self._coordinator(name).groups.delete_group(name, done)
        await done.wait(f"{name} was not deleted")
        return {"name": name}

    async def reset_group(self, body: dict[str, Any]) -> Any:
        """Move a group's committed offsets; with `preview`, only say what would be moved, and from where to where."""
        name, to = _text(body, "name"), body.get("to")
        broker = self._coordinator(name)
        shard = broker.groups.shard(name)
        plan = []
        for (topic, index), committed in sorted(shard.offsets.of_group(name).items()):
            if body.get("topic") in (None, "", topic):
                found = self._messages.partitions(topic, str(index)) if self._exists(topic, index) else []
                if found:
                    target = await self._target(found[0], committed.offset, to, body)
                    plan.append({"topic": topic, "partition": index, "from": committed.offset, "to": target})
        if not plan:
            raise Conflict(f"{name} has committed no offsets that could be moved")
        if not body.get("preview"):
            if not shard.groups[name].is_empty:
                raise Conflict(f"{name} has members: stop its consumers first, or they would overwrite this")
            await self._commit(broker, name, plan)
        return {"name": name, "plan": plan, "done": not body.get("preview")}

    def _exists(self, topic: str, index: int) -> bool:
        return any(broker.cluster.partition(topic, index) is not None for broker in self._cluster.brokers)

    async def _target(self, partition: Partition, current: int, to: Any, body: dict[str, Any]) -> int:
        log = partition.log
        match to:
            case "earliest":
                target = log.log_start_offset
            case "latest":
                target = log.high_watermark
            case "offset":
                target = _integer(body, "offset")
            case "shift":
                target = current + _integer(body, "offset")
            case "time":
                target = await at_time(log, _integer(body, "time"))
            case _:
                raise ConsoleError("'to' is earliest, latest, offset, shift or time")
        return min(max(target, log.log_start_offset), log.high_watermark)

    async def _commit(self, broker: Broker, name: str, plan: list[dict[str, Any]]) -> None:
        now_ms = broker.clock.now_ms()
        offsets = []
        for each in plan:
            image = broker.cluster.topic(each["topic"])
            if image is not None:
                committed = CommittedOffset(each["to"], -1, "", now_ms, -1, image.topic_id)
                offsets.append((TopicPartition(each["topic"], each["partition"]), committed))
        done = _Done()
        broker.groups.commit(name, _NOBODY, offsets, done)
        await done.wait(f"the offsets of {name} were not moved")


class _Append:
    """An append of one record, until it is written."""

    def __init__(self) -> None:
        self.result: asyncio.Future[AppendResult | Refusal] = asyncio.get_running_loop().create_future()

    def appended(self, partition: Partition, place: Any, result: AppendResult | Refusal) -> None:
        if not self.result.done():
            self.result.set_result(result)


class _Done:
    """What a coordinator answers."""

    def __init__(self) -> None:
        self._error: asyncio.Future[ErrorCode] = asyncio.get_running_loop().create_future()

    def __call__(self, error: ErrorCode) -> None:
        if not self._error.done():
            self._error.set_result(error)

    async def wait(self, complaint: str) -> None:
        error = await asyncio.wait_for(self._error, _SECONDS)
        if error:
            raise Conflict(f"{complaint}: {error.name}")


def _text(body: dict[str, Any], name: str) -> str:
    text = body.get(name)
    if not isinstance(text, str) or not text:
        raise ConsoleError(f"'{name}' is missing")
    return text


def _integer(body: dict[str, Any], name: str) -> int:
    number = body.get(name)
    if not isinstance(number, int) or isinstance(number, bool):
        raise ConsoleError(f"'{name}' is a number")
    return number


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode()
