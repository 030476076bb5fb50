"""What requests change: groups, transactions, high watermarks, records of share groups and sessions, as differences.

The last known state of a thing is compared with its current state whenever a request about it arrives, has been given
to its handler, or is answered. A difference is attributed to the request at whose step it is found, or, if it was
there when the request arrived, to nobody (most likely a timer).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from barnabas.broker.share.key import SharePartitionKey
from barnabas.broker.share.sessions import FINAL_EPOCH, INITIAL_EPOCH, next_epoch
from barnabas.broker.share.state_batches import DeliveryState
from barnabas.broker.testing.subjects import Subjects
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.fetch import FetchRequest, FetchResponse
from barnabas.protocol.messages.share_acknowledge import ShareAcknowledgeRequest, ShareAcknowledgeResponse
from barnabas.protocol.messages.share_fetch import ShareFetchRequest, ShareFetchResponse
from barnabas.protocol.schema import Message

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

Json = dict[str, Any]
# A kind, and a name: a group's or a transaction's, a topic with the number of a partition, or a group with both.
Thing = tuple[str, Any]

# The APIs that can move offsets of partitions.
_MOVES_OFFSETS: Final = frozenset(
    {ApiKey.PRODUCE, ApiKey.DELETE_RECORDS, ApiKey.END_TXN, ApiKey.WRITE_TXN_MARKERS, ApiKey.INIT_PRODUCER_ID}
)
# The APIs that give out records of share groups, or say what happened to them.
_SHARES_RECORDS: Final = frozenset({ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE})
# How many things are remembered: the most recently used ones.
_REMEMBERED: Final = 10_000


class States:
    def __init__(self) -> None:
        self._known: dict[tuple[int, Thing], Json] = {}

    def clear(self) -> None:
        self._known.clear()

    def things_of(self, broker: Broker, key: ApiKey, subjects: Subjects) -> list[Thing]:
        """What a request may change, derived from its subjects."""
        things: list[Thing] = [("group", group_id) for group_id in subjects.groups]
        things += [("transaction", transactional_id) for transactional_id in subjects.transactional_ids]
        if key in _MOVES_OFFSETS:
            things += [("partition", each) for each in subjects.partitions if each[1] is not None]
            for transactional_id in subjects.transactional_ids:
                known = broker.transactions.describe(transactional_id)
                if not isinstance(known, ErrorCode):
                    things += [("partition", each) for each in known.partitions]
        if key in _SHARES_RECORDS:
            things += [
                ("share_partition", (group_id, *each))
                for group_id in subjects.groups
                for each in subjects.partitions
                if each[1] is not None
            ]
        return list(dict.fromkeys(things))

    def changes(self, broker: Broker, things: Iterable[Thing]) -> list[Json]:
        """The differences from the last known state of these things at a broker, which becomes the current one."""
        found = []
        for thing in things:
            now = _look(broker, thing)
            key = broker.config.node_id, thing
            before = self._known.pop(key, now)
            self._known[key] = now
            if now != before:
                differences = {name: [before[name], now[name]] for name in now if before[name] != now[name]}
                found.append({thing[0]: _name(thing), **differences})
        while len(self._known) > _REMEMBERED:
            del self._known[next(iter(self._known))]
        return found


def _look(broker: Broker, thing: Thing) -> Json:
    kind, name = thing
    if kind == "partition":
        return _partition(broker, *name)
    if kind == "share_partition":
        return _share_partition(broker, *name)
    return _group(broker, name) if kind == "group" else _transaction(broker, name)


def _group(broker: Broker, group_id: str) -> Json:
    groups = broker.groups
    group = None if groups.objection(group_id) else groups.shard(group_id).groups.get(group_id)
    if group is None:
        return {"state": None, "generation": None, "members": 0}
    return {"state": group.state_name, "generation": group.generation, "members": len(group.identities())}


def _transaction(broker: Broker, transactional_id: str) -> Json:
    known = broker.transactions.describe(transactional_id)
    if isinstance(known, ErrorCode):
        return {"state": None, "producer_epoch": None}
    return {"state": known.state.label, "producer_epoch": known.producer_epoch}


def _partition(broker: Broker, topic: str, index: int) -> Json:
    partition = broker.replicas.find(topic, index)
    if partition is None:
        return {"high_watermark": None, "last_stable_offset": None, "log_start_offset": None}
    log = partition.log
    return {
        "high_watermark": log.high_watermark,
        "last_stable_offset": log.last_stable_offset,
        "log_start_offset": log.log_start_offset,
    }


def _share_partition(broker: Broker, group_id: str, topic: str, index: int) -> Json:
    """How far a share group has come in a partition: in Kafka's words, its start offset and end offset. `acquired` and
    `available` are how many records in between members have, and have given back."""
    image = broker.cluster.topic(topic)
    key = SharePartitionKey(group_id, image.topic_id, index) if image is not None else None
    share = broker.share_partitions.find(key) if key is not None else None
    if share is None or share.in_flight is None:
        return {"start_offset": None, "end_offset": None, "acquired": 0, "available": 0}
    counts = dict.fromkeys(DeliveryState, 0)
    for first, last, state, *_ in share.in_flight.states():
        counts[state] += last - first + 1
    return {
        "start_offset": share.in_flight.start_offset,
        "end_offset": share.in_flight.next_new - 1,
        "acquired": counts[DeliveryState.ACQUIRED],
        "available": counts[DeliveryState.AVAILABLE],
    }


def _name(thing: Thing) -> str:
    kind, name = thing
    if kind == "share_partition":
        return f"{name[0]}:{name[1]}-{name[2]}"
    return f"{name[0]}-{name[1]}" if kind == "partition" else str(name)


def session_changes(request: Message, answer: Message | None) -> list[Json]:
    """What a Fetch or a request of a share session did to its session, according to its request and answer."""
    if isinstance(request, ShareFetchRequest | ShareAcknowledgeRequest):
        return _share_session_changes(request, answer)
    if not isinstance(request, FetchRequest) or not isinstance(answer, FetchResponse):
        return []
    if answer.error_code:
        return [{"fetch_session": request.session_id, "error": ErrorCode(answer.error_code).name}]
    if request.session_epoch == 0 and answer.session_id:
        return [{"fetch_session": answer.session_id, "epoch": [None, 1]}]
    if request.session_epoch == -1 and request.session_id:
        return [{"fetch_session": request.session_id, "epoch": [None, "closed"]}]
    if request.session_epoch > 0:
        return [{"fetch_session": request.session_id, "epoch": [request.session_epoch, request.session_epoch + 1]}]
    return []


def _share_session_changes(request: ShareFetchRequest | ShareAcknowledgeRequest, answer: Message | None) -> list[Json]:
    if not isinstance(answer, ShareFetchResponse | ShareAcknowledgeResponse):
        return []
    session, epoch = f"{request.group_id}:{request.member_id}", request.share_session_epoch
    if answer.error_code:
        return [{"share_session": session, "error": ErrorCode(answer.error_code).name}]
    before = None if epoch in (INITIAL_EPOCH, FINAL_EPOCH) else epoch
    return [{"share_session": session, "epoch": [before, "closed" if epoch == FINAL_EPOCH else next_epoch(epoch)]}]
