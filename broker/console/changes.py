"""What the console may change, where it may: topics, messages and groups. Each takes the body of a request."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from barnabas.broker.config import OperationKind
from barnabas.broker.config.resources import ResourceType
from barnabas.broker.config_resources import alter
from barnabas.broker.console.errors import Conflict, ConsoleError, Forbidden, NotFound
from barnabas.broker.console.messages import Messages, at_time
from barnabas.broker.controller.create_partitions import NewPartitions
from barnabas.broker.controller.create_topics import NewTopic
from barnabas.broker.controller.delete_topics import TopicReference
from barnabas.broker.group.kind import Committer
from barnabas.broker.group.records import CommittedOffset
from barnabas.broker.handlers.delete_records import delete_records
from barnabas.broker.handlers.incremental_alter_configs import alteration
from barnabas.broker.security.authorizer import Access
from barnabas.broker.testing.nodes import known_everywhere, term_of
from barnabas.protocol.acls import AclOperation
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from barnabas.protocol.messages.incremental_alter_configs import AlterableConfig, AlterConfigsResource
from barnabas.protocol.records.builder import NewRecord, build_batch
from barnabas.protocol.topic_partition import TopicPartition
from barnabas.storage.write import AppendResult, Refusal

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.local_cluster import LocalCluster
    from barnabas.broker.replica.partition import Partition

Body = dict[str, Any]

_MOST_REPLAYED: Final = 200
_NOBODY: Final = Committer("", None, -1)  # an administrator, who is in no group
_SECONDS: Final = 30.0


class Changes:
    def __init__(self, cluster: LocalCluster, messages: Messages) -> None:
        self._cluster = cluster
        self._messages = messages

    # --- topics ---

    async def create_topic(self, access: Access, body: Body) -> Any:
        name, partitions = _text(body, "name"), body.get("partitions", -1)
        if not isinstance(partitions, int) or isinstance(partitions, bool):
            raise ConsoleError("'partitions' is a number")
        if not (access.cluster(AclOperation.CREATE) or access.topic(AclOperation.CREATE, name)):
            raise Forbidden(f"you may not create {name}")
        (result,) = await term_of(self._cluster).create_topics([NewTopic(name, partitions, -1, configs={})])
        if result.error_code:
            raise Conflict(result.error_message or result.error_code.name)
        await known_everywhere(self._cluster, name)
        return {"name": name, "partitions": result.num_partitions}

    async def delete_topic(self, access: Access, body: Body) -> Any:
        name = _text(body, "name")
        _check(access, AclOperation.DELETE, name, "delete")
        (result,) = await term_of(self._cluster).delete_topics([TopicReference(name)])
        if result.error_code:
            raise Conflict(f"{name} was not deleted: {result.error_code.name}")
        return {"name": name}

    async def grow_topic(self, access: Access, body: Body) -> Any:
        """Give a topic more partitions. Keys go to other partitions from then on."""
        name, partitions = _text(body, "name"), _integer(body, "partitions")
        _check(access, AclOperation.ALTER, name, "alter")
        (result,) = await term_of(self._cluster).create_partitions([NewPartitions(name, partitions, None)])
        if result.error_code:
            raise Conflict(result.error_message or result.error_code.name)
        await known_everywhere(self._cluster, name)
        return {"name": name, "partitions": partitions}

    async def alter_topic(self, access: Access, body: Body) -> Any:
        """Set some of a topic's settings; those that are null get their default back."""
        name, configs = _text(body, "name"), body.get("configs")
        if not isinstance(configs, dict) or not all(isinstance(value, str | None) for value in configs.values()):
            raise ConsoleError("'configs' is an object of settings, each a text or null")
        broker = self._broker()
        changes = [
            AlterableConfig(
                name=key,
                config_operation=OperationKind.DELETE if value is None else OperationKind.SET,
                value=value,
            )
            for key, value in configs.items()
        ]
        resource = AlterConfigsResource(resource_type=ResourceType.TOPIC, resource_name=name, configs=changes)
        (outcome,) = await alter(broker, access, [alteration(broker, resource)], False)
        if outcome.error_code:
            denied = outcome.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
            complaint = outcome.error_message or outcome.error_code.name
            raise Forbidden(f"you may not alter settings of {name}") if denied else Conflict(complaint)
        return {"name": name, "configs": configs}

    def _broker(self) -> Broker:
        found = self._cluster.controller or next(iter(self._cluster.brokers), None)
        if found is None:
            raise Conflict("no broker is running")
        return found

    # --- messages ---

    async def delete_records(self, access: Access, body: Body) -> Any:
        """Delete the records of one partition, or with `partition` null of all, below an offset; -1: all there are."""
        topic, offset = _text(body, "topic"), _integer(body, "offset")
        wanted = body.get("partition")
        _check(access, AclOperation.DELETE, topic, "delete records of")
        starts = []
        for partition in self._messages.partitions(topic, None if wanted is None else str(wanted)):
            broker = next(each for each in self._cluster.brokers if each.replicas.find(*_name(partition)) is partition)
            deleted = DeleteRecordsPartition(partition_index=partition.index, offset=offset)
            message = DeleteRecordsRequest(
                topics=[DeleteRecordsTopic(name=topic, partitions=[deleted])], timeout_ms=int(_SECONDS * 1000)
            )
            answer = await delete_records(broker, access, message)
            result = answer.topics[0].partitions[0]
            if result.error_code:
                error = ErrorCode(result.error_code).name
                raise Conflict(f"records of partition {partition.index} were not deleted: {error}")
            starts.append({"partition": partition.index, "first_offset": result.low_watermark})
        return {"topic": topic, "partitions": starts}

    async def replay(self, access: Access, body: Body) -> Any:
        """Write some records again: to another topic or the same one, with their keys, values and headers."""
        source, target, wanted = _text(body, "from"), _text(body, "to"), body.get("records")
        if not isinstance(wanted, list) or not 0 < len(wanted) <= _MOST_REPLAYED:
            raise ConsoleError(f"'records' is a list of 1 to {_MOST_REPLAYED} records")
        _check(access, AclOperation.READ, source, "read")
        _check(access, AclOperation.WRITE, target, "write to")
        places = self._messages.partitions(target, None)
        if not places:
            raise Conflict(f"{target} is not led here")
        batches: dict[int, list[NewRecord]] = {}
        now_ms = self._cluster.clock.now_ms()
        for each in wanted:
            if not isinstance(each, dict):
                raise ConsoleError("each of 'records' has a partition and an offset")
            index = _integer(each, "partition")
            record = await self._messages.record(source, str(index), _integer(each, "offset"))
            found = NewRecord(now_ms, record.key, record.value, record.headers)
            batches.setdefault(index % len(places), []).append(found)
        written = [await self._append(target, places[index], records) for index, records in batches.items()]
        return {"topic": target, "written": written}

    async def produce(self, access: Access, body: Body) -> Any:
        topic, index = _text(body, "topic"), body.get("partition", 0)
        key, value = body.get("key"), body.get("value")
        if not isinstance(index, int) or not isinstance(key, str | None) or not isinstance(value, str | None):
            raise ConsoleError("'partition' is a number, 'key' and 'value' are texts or null")
        _check(access, AclOperation.WRITE, topic, "write to")
        (partition,) = self._messages.partitions(topic, str(index)) or (None,)
        if partition is None:
            raise Conflict(f"partition {index} of {topic} is not led here")
        record = NewRecord(self._cluster.clock.now_ms(), _bytes(key), _bytes(value), _headers(body))
        return await self._append(topic, partition, [record])

    async def _append(self, topic: str, partition: Partition, records: list[NewRecord]) -> dict[str, int]:
        if partition.leadership is None:
            raise Conflict(f"partition {partition.index} of {topic} is not led here")
        if partition.is_internal:
            raise Conflict(f"{topic} belongs to the broker")
        waiting = _Append()
        partition.append_soon(memoryview(build_batch(records)), waiting, None)
        result = await asyncio.wait_for(waiting.result, _SECONDS)
        if not isinstance(result, AppendResult):
            raise Conflict(f"the broker refused it: {result}")
        return {"partition": partition.index, "offset": result.base_offset}

    # --- groups ---

    def _coordinator(self, access: Access, operation: AclOperation, group_id: str) -> Broker:
        if not access.group(AclOperation.DESCRIBE, group_id):
            raise NotFound(f"there is no group {group_id!r}")
        if not access.group(operation, group_id):
            raise Forbidden(f"you may not {operation.name.lower()} the group {group_id}")
        for broker in self._cluster.brokers:
            if any(group_id in shard.groups for shard in broker.groups.shards):
                return broker
        raise NotFound(f"there is no group {group_id!r}")

    async def delete_group(self, access: Access, body: Body) -> Any:
        name = _text(body, "name")
        done = _Done()
        self._coordinator(access, AclOperation.DELETE, name).groups.delete_group(name, done)
        await done.wait(f"{name} was not deleted")
        return {"name": name}

    async def reset_group(self, access: Access, body: Body) -> Any:
        """Move a group's committed offsets; with `preview`, only say what would be moved, and from where to where."""
        name, to = _text(body, "name"), body.get("to")
        broker = self._coordinator(access, AclOperation.READ, name)
        shard = broker.groups.shard(name)
        plan = []
        for (topic, index), committed in sorted(shard.offsets.of_group(name).items()):
            if body.get("topic") in (None, "", topic) and access.topic(AclOperation.READ, topic):
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

    async def _target(self, partition: Partition, current: int, to: Any, body: Body) -> int:
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


def _check(access: Access, operation: AclOperation, topic: str, words: str) -> None:
    """What a user may not describe looks as if it did not exist."""
    if not access.topic(AclOperation.DESCRIBE, topic):
        raise NotFound(f"there is no topic {topic!r}")
    if not access.topic(operation, topic):
        raise Forbidden(f"you may not {words} {topic}")


def _name(partition: Partition) -> tuple[str, int]:
    return partition.topic, partition.index


def _headers(body: Body) -> list[tuple[str, bytes | None]]:
    told = body.get("headers", [])
    if not isinstance(told, list) or not all(
        isinstance(each, list) and len(each) == 2 and all(isinstance(text, str) for text in each) for each in told
    ):
        raise ConsoleError("'headers' is a list of pairs of texts")
    return [(name, value.encode()) for name, value in told]


def _text(body: Body, name: str) -> str:
    text = body.get(name)
    if not isinstance(text, str) or not text:
        raise ConsoleError(f"'{name}' is missing")
    return text


def _integer(body: Body, name: str) -> int:
    number = body.get(name)
    if not isinstance(number, int) or isinstance(number, bool):
        raise ConsoleError(f"'{name}' is a number")
    return number


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode()
