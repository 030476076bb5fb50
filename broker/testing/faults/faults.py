"""The faults of some brokers: which of them affects a request, and what then happens to it.

Faults are checked in the order in which they were added, and the first that fires applies; those after it do not count
the request. All times are those of the broker's clock.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import structlog

from barnabas.broker.clock import Timer
from barnabas.broker.server.observe import Exchange, mute
from barnabas.broker.testing.faults.error_answers import copied, error_answer, is_empty, merge, split
from barnabas.broker.testing.faults.fault import SESSION_ERRORS, Fault, FaultError, parse
from barnabas.broker.testing.faults.rewriting import corrupted, metadata_with_error, partitions_with_error
from barnabas.broker.testing.notes import Notes
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.fetch import FetchRequest, FetchResponse
from barnabas.protocol.messages.metadata import MetadataResponse
from barnabas.protocol.messages.produce import ProduceRequest
from barnabas.protocol.schema import Message

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.testing.fleet import Fleet

log = structlog.get_logger()

# How many expired faults are still listed.
_REMEMBERED: Final = 1000


class Passage(Protocol):
    """Where requests and answers continue from here."""

    def proceed(self, exchange: Exchange) -> None: ...

    def deliver(self, exchange: Exchange, answer: Message | None) -> None: ...


class Held(NamedTuple):
    """A request or an answer that waits."""

    fault: Fault
    timer: Timer
    go: Callable[[], None]


class Faults:
    def __init__(self, fleet: Fleet, passage: Passage, changed: Callable[[], None]) -> None:
        """`changed` is called when the first fault is added and when the last one is over."""
        self._fleet = fleet
        self._passage = passage
        self._changed = changed
        self._all: dict[int, Fault] = {}
        self._active: list[Fault] = []
        self._expiries: dict[int, Timer] = {}
        self._last_number = 0
        self._stopped: Timer | None = None
        self._waiting: list[Exchange] = []  # for the end of a stop
        self._held: dict[Exchange, Held] = {}  # by a delay

    # --- which there are ---

    def add(self, asked: Mapping[str, Any]) -> Fault:
        """Add a fault, from its fields. Raises FaultError."""
        spec = parse(asked)
        self._last_number += 1
        given = {name: value for name, value in asked.items() if value is not None}
        fault = Fault(self._last_number, spec, given)
        self._all[fault.number] = fault
        self._active.append(fault)
        if spec.for_ms is not None:
            end = self._fleet.clock.call_later(spec.for_ms / 1000, lambda: self._end(fault))
            self._expiries[fault.number] = end
        self._forget_old_ones()
        self._changed()
        return fault

    def add_all(self, asked: list[Mapping[str, Any]]) -> list[Fault]:
        """Add several, or none if one of them is wrong."""
        for number, each in enumerate(asked, 1):
            try:
                parse(each)
            except FaultError as error:
                raise FaultError(
                    error.field, f"{str(error).removeprefix(error.field + ': ')} (fault {number})"
                ) from None
        return [self.add(each) for each in asked]

    def get(self, number: int) -> Fault | None:
        return self._all.get(number)

    def all(self) -> list[Fault]:
        return list(self._all.values())

    @property
    def active(self) -> bool:
        return bool(self._active)

    @property
    def refuses(self) -> bool:
        return any(fault.spec.refuse_connections for fault in self._active)

    def remove(self, number: int) -> Fault | None:
        """Remove a fault and release what it holds back."""
        fault = self._all.pop(number, None)
        if fault is not None:
            self._end(fault)
            for exchange, held in list(self._held.items()):
                if held.fault is fault:
                    del self._held[exchange]
                    held.timer.cancel()
                    held.go()
        return fault

    def clear(self) -> None:
        """Remove all faults and release whatever waits because of one."""
        self.keep_only(())

    def keep_only(self, numbers: Collection[int]) -> None:
        """Remove all other faults, end a freeze of the broker, and release whatever waits because of one."""
        for fault in list(self._all.values()):
            if fault.number not in numbers:
                self.remove(fault.number)
        self.resume()

    def _end(self, fault: Fault) -> None:
        fault.over = True
        timer = self._expiries.pop(fault.number, None)
        if timer is not None:
            timer.cancel()
        if fault in self._active:
            self._active.remove(fault)
            self._changed()

    def _forget_old_ones(self) -> None:
        while len(self._all) > _REMEMBERED:
            over = next((number for number, fault in self._all.items() if fault.over), None)
            if over is None:
                return
            del self._all[over]

    def _fires(self, fault: Fault) -> bool:
        fires = fault.fires()
        if fault.over:
            self._end(fault)
        return fires

    # --- freezing ---

    def stop(self, milliseconds: int) -> None:
        """Answer nobody for a while."""
        if self._stopped is not None:
            self._stopped.cancel()
        log.info("a fault stops the broker", ms=milliseconds)
        for broker in self._fleet.brokers:
            broker.server.pause()
        self._stopped = self._fleet.clock.call_later(milliseconds / 1000, self.resume)

    def resume(self) -> None:
        if self._stopped is None:
            return
        self._stopped.cancel()
        self._stopped = None
        for broker in self._fleet.brokers:
            broker.server.resume()
        waiting, self._waiting = self._waiting, []
        for exchange in waiting:
            self._passage.proceed(exchange)

    # --- connections ---

    def objection_to(self, peer: tuple[str, int]) -> str | None:
        """Why a client may not connect; None if it may."""
        for fault in [each for each in self._active if each.spec.refuse_connections]:
            if self._fires(fault):
                return f"fault {fault.number}"
        return None

    # --- requests ---

    def arrived(self, exchange: Exchange) -> None:
        fault = self._met_by(exchange)
        if fault is None:
            self._passage.proceed(exchange)
        elif fault.spec.delay_ms:
            _own_records(exchange.message)
            self._hold(exchange, fault, fault.spec.delay_ms, lambda: self._happen(exchange, fault))
        else:
            self._happen(exchange, fault)

    def _hold(self, exchange: Exchange, fault: Fault, milliseconds: int, go: Callable[[], None]) -> None:
        def end() -> None:
            del self._held[exchange]
            go()

        self._held[exchange] = Held(fault, self._fleet.clock.call_later(milliseconds / 1000, end), go)

    def _met_by(self, exchange: Exchange) -> Fault | None:
        for fault in list(self._active):
            # Which records to corrupt is decided when they are read.
            if fault.spec.refuse_connections or fault.spec.corrupt or not self._is_about(fault, exchange):
                continue
            if self._fires(fault):
                notes: Notes = exchange.notes
                notes.fault = fault
                return fault
        return None

    def _is_about(self, fault: Fault, exchange: Exchange) -> bool:
        notes: Notes = exchange.notes
        key, version = exchange.api_key, exchange.version
        if fault.spec.of_parts and key == ApiKey.METADATA and exchange.message.topics is None:  # type: ignore[attr-defined]
            # All topics are requested, including the affected one.
            topics = [(name, None) for name in notes.broker.cluster.topics]
            subjects = type(notes.subjects)([*topics], notes.subjects.groups, notes.subjects.transactional_ids)
            return fault.is_about(key, version, exchange.client_id, str(exchange.connection.principal), subjects)
        return fault.is_about(key, version, exchange.client_id, str(exchange.connection.principal), notes.subjects)

    def _happen(self, exchange: Exchange, fault: Fault) -> None:
        if exchange.connection.closed:
            return
        spec = fault.spec
        if spec.close == "before":
            exchange.disconnect(f"fault {fault.number}")
        elif spec.stop_ms is not None:
            _own_records(exchange.message)
            self._waiting.append(exchange)
            self.stop(spec.stop_ms)
        elif spec.error is not None:
            self._fail(exchange, fault, spec.error)
        else:
            self._passage.proceed(exchange)

    def _fail(self, exchange: Exchange, fault: Fault, error: ErrorCode) -> None:
        key, message = exchange.api_key, exchange.message
        notes: Notes = exchange.notes
        if isinstance(message, FetchRequest) and error not in SESSION_ERRORS:
            message.max_wait_ms = 0  # an error is answered at once
            self._passage.proceed(exchange)  # and put into the real answer, so that the session stays in step
            return
        if key == ApiKey.METADATA:
            self._passage.proceed(exchange)  # an answer without brokers would be more than this error
            return
        if isinstance(message, ProduceRequest) and message.acks == 0:
            exchange.disconnect("a Produce with acks=0 failed")
            return
        taken = split(key, message, fault.hits_part, _names_at(notes.broker)) if fault.spec.of_parts else None
        of_parts = taken is not None
        errors = error_answer(key, exchange.version, taken or message, error, of_parts=of_parts)
        if errors is None or (of_parts and not is_empty(key, message)):
            notes.errors = errors
            self._passage.proceed(exchange)
        else:
            self._deliver(exchange, fault, errors)

    # --- answers ---

    def answered(self, exchange: Exchange, answer: Message | None) -> None:
        notes: Notes = exchange.notes
        fault = notes.fault or (self._corrupting(exchange, answer) if isinstance(answer, FetchResponse) else None)
        if fault is None:
            self._passage.deliver(exchange, answer)
            return
        notes.fault = fault
        if fault.spec.close == "after":
            exchange.disconnect(f"fault {fault.number}")
            return
        self._deliver(exchange, fault, self._changed_answer(exchange, fault, answer))

    def _corrupting(self, exchange: Exchange, answer: FetchResponse) -> Fault | None:
        for fault in [each for each in self._active if each.spec.corrupt and self._is_about(each, exchange)]:
            if corrupted(answer, fault.hits_part, _names_at(exchange.notes.broker)) is not None and self._fires(fault):
                return fault
        return None

    def _changed_answer(self, exchange: Exchange, fault: Fault, answer: Message | None) -> Message | None:
        spec, notes = fault.spec, exchange.notes
        if notes.errors is not None and answer is not None:
            return merge(exchange.api_key, answer, notes.errors)
        if spec.corrupt and isinstance(answer, FetchResponse):
            return corrupted(answer, fault.hits_part, _names_at(notes.broker)) or answer
        if spec.error is not None and isinstance(answer, FetchResponse) and not answer.error_code:
            name_of = _names_at(notes.broker)
            wanted = [key for key in _fetched(exchange) if fault.hits_part(key[0] or name_of(key[1]), key[2])]
            return partitions_with_error(answer, wanted, spec.error)
        if spec.error is not None and isinstance(answer, MetadataResponse):
            return metadata_with_error(answer, fault.hits_part, spec.error, of_partitions=spec.partition is not None)
        if spec.throttle_ms is not None and answer is not None and "throttle_time_ms" in type(answer).fields:
            answer = copied(answer)
            answer.throttle_time_ms = spec.throttle_ms  # type: ignore[attr-defined]
        return answer

    def _deliver(self, exchange: Exchange, fault: Fault, answer: Message | None) -> None:
        """Release an answer, later if the fault delays it; after a throttled answer the connection is muted."""

        def deliver() -> None:
            if exchange.connection.closed:
                return
            self._passage.deliver(exchange, answer)
            if fault.spec.throttle_ms is not None and not exchange.connection.closed:
                mute(exchange.connection, fault.spec.throttle_ms / 1000, self._fleet.clock.call_later)

        if fault.spec.delay_answer_ms and fault.number in self._all:  # it may have been removed since the request came
            self._hold(exchange, fault, fault.spec.delay_answer_ms, deliver)
        else:
            deliver()


def _fetched(exchange: Exchange) -> list[tuple[str, bytes, int]]:
    """All partitions that a Fetch reads, including those that only its session knows."""
    message = exchange.message
    if not isinstance(message, FetchRequest):
        return []
    named = [(t.topic, t.topic_id, p.partition) for t in message.topics for p in t.partitions]
    if message.session_id and message.session_epoch > 0:
        notes: Notes = exchange.notes
        session = notes.broker.fetch_sessions.find(message.session_id)
        named += [
            (key.topic, key.topic_id, key.partition) for key in (session.partitions if session is not None else ())
        ]
    return list(dict.fromkeys(named))


def _names_at(broker: Broker) -> Callable[[bytes], str | None]:
    """What topics are called, by their ids."""

    def name_of(topic_id: bytes) -> str | None:
        topic = broker.cluster.topic_by_id(topic_id)
        return topic.name if topic is not None else None

    return name_of


def _own_records(message: Message) -> None:
    """Copy records out of the receive buffer, which is another request's by the time that this one is handled."""
    if isinstance(message, ProduceRequest):
        for topic in message.topic_data:
            for partition in topic.partition_data:
                if isinstance(partition.records, memoryview):
                    partition.records = memoryview(bytearray(partition.records))
