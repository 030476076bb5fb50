"""Decisions about a transactional id: pure functions from its current state to the next.

Each returns the next content of the id's record, or an error code; NONE means that the request is granted and nothing
has to be written. The caller makes sure that the record is in the log before it counts.
"""

from __future__ import annotations

from collections.abc import Set
from typing import Final

from barnabas.broker.transaction.metadata import BUMPS_EPOCH, LAST_EPOCH, NO_PARTITIONS, NO_START, TransactionMetadata
from barnabas.broker.transaction.states import COMPLETED, PREDECESSORS, TransactionState
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from barnabas.protocol.topic_partition import TopicPartition

_EMPTY: Final = TransactionState.EMPTY
_ONGOING: Final = TransactionState.ONGOING
_PREPARE_COMMIT: Final = TransactionState.PREPARE_COMMIT
_PREPARE_ABORT: Final = TransactionState.PREPARE_ABORT
_COMPLETE_COMMIT: Final = TransactionState.COMPLETE_COMMIT
_COMPLETE_ABORT: Final = TransactionState.COMPLETE_ABORT

Outcome = TransactionMetadata | ErrorCode


# --- a producer starts ---


def needs_producer_id(current: TransactionMetadata | None) -> bool:
    """Whether the next step may take a new producer id: the id is new, or its epochs are used up."""
    return current is None or current.is_epoch_exhausted


def init_producer_id(
    current: TransactionMetadata | None,
    transactional_id: str,
    timeout_ms: int,
    expected_id: int,
    expected_epoch: int,
    new_producer_id: int | None,
    now_ms: int,
) -> Outcome:
    """A producer starts, and the previous owner of the id is fenced. An open transaction is aborted first.

    `expected_id` and `expected_epoch` are those of a producer that continues after an error (KIP-360), or -1.
    """
    if current is None:
        if new_producer_id is None:
            return ErrorCode.CONCURRENT_TRANSACTIONS
        return TransactionMetadata(
            transactional_id,
            new_producer_id,
            0,
            timeout_ms,
            _EMPTY,
            last_update_ms=now_ms,
            previous_producer_id=new_producer_id,
        )
    if expected_id not in (NO_PRODUCER_ID, current.producer_id) and not (
        # The answer with the next producer id was lost, and this is the retry.
        expected_id == current.previous_producer_id and expected_epoch >= LAST_EPOCH
    ):
        return ErrorCode.PRODUCER_FENCED
    if current.state.is_prepared:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    if current.state == _ONGOING:
        return abort_and_fence(current, now_ms, new_producer_id)
    expected = None if expected_id == NO_PRODUCER_ID else expected_epoch
    # The epoch after the last one only fences and belongs to nobody, so the one before it may continue.
    is_fence = current.producer_epoch > LAST_EPOCH and expected == current.last_producer_epoch
    if current.is_epoch_exhausted and (is_fence or expected in (None, current.producer_epoch)):
        if new_producer_id is None:
            return ErrorCode.CONCURRENT_TRANSACTIONS
        producer_id, epoch = new_producer_id, 0
        last_epoch = NO_PRODUCER_EPOCH if expected is None else expected
    elif expected is None:
        producer_id, epoch, last_epoch = current.producer_id, current.producer_epoch + 1, NO_PRODUCER_EPOCH
    elif expected == current.producer_epoch:
        producer_id, epoch, last_epoch = current.producer_id, current.producer_epoch + 1, current.producer_epoch
    elif expected == current.last_producer_epoch:
        # A retry of the same request, whose answer was lost. No other producer came in between.
        producer_id, epoch, last_epoch = current.producer_id, current.producer_epoch, current.last_producer_epoch
    else:
        return ErrorCode.PRODUCER_FENCED
    return TransactionMetadata(
        transactional_id,
        producer_id,
        epoch,
        timeout_ms,
        _EMPTY,
        NO_PARTITIONS,
        NO_START,
        now_ms,
        current.client_version,
        current.producer_id,
        NO_PRODUCER_ID,
        last_epoch,
    )


# --- a transaction continues ---


def add_partitions(
    current: TransactionMetadata | None,
    producer_id: int,
    producer_epoch: int,
    partitions: Set[TopicPartition],
    client_version: int,
    now_ms: int,
) -> Outcome:
    error = objection(current, producer_id, producer_epoch)
    if error or current is None:
        return error
    state = current.state
    if state != _ONGOING:
        return TransactionMetadata(
            current.transactional_id,
            producer_id,
            producer_epoch,
            current.timeout_ms,
            _ONGOING,
            frozenset(partitions),
            now_ms,
            now_ms,
            client_version,
            producer_id,
            NO_PRODUCER_ID,
            current.last_producer_epoch,
        )
    if partitions <= current.partitions:
        return ErrorCode.NONE
    return TransactionMetadata(
        current.transactional_id,
        producer_id,
        producer_epoch,
        current.timeout_ms,
        _ONGOING,
        current.partitions | partitions,
        current.start_ms,
        now_ms,
        client_version,
        producer_id,
        NO_PRODUCER_ID,
        current.last_producer_epoch,
    )


def objection(current: TransactionMetadata | None, producer_id: int, producer_epoch: int) -> ErrorCode:
    """Why a producer may not continue its transaction or start one."""
    if current is None or current.producer_id != producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if current.producer_epoch != producer_epoch or producer_epoch > LAST_EPOCH:
        return ErrorCode.PRODUCER_FENCED  # no producer gets the very last epoch: it fences the one before
    return ErrorCode.CONCURRENT_TRANSACTIONS if current.state.is_prepared else ErrorCode.NONE


# --- a transaction ends ---


def end_transaction(
    current: TransactionMetadata | None,
    producer_id: int,
    producer_epoch: int,
    commit: bool,
    client_version: int,
    new_producer_id: int | None,
    now_ms: int,
) -> Outcome:
    """The producer commits or aborts.

    With transaction version 2 it also gets a new epoch, or a new id when the epochs are used up, and it may abort a
    transaction that it has not started.
    """
    if current is None:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if client_version < BUMPS_EPOCH:
        return _end_without_bump(current, producer_id, producer_epoch, commit, client_version, now_ms)
    # A retry of the end: its first answer was lost, and the epoch has been raised meanwhile.
    bumped = current.client_version >= BUMPS_EPOCH and current.producer_epoch == producer_epoch + 1
    replaced = (
        current.client_version >= BUMPS_EPOCH
        and current.previous_producer_id == producer_id
        and producer_epoch == LAST_EPOCH
        and current.producer_epoch == 0
    )
    if current.producer_id != producer_id and not replaced:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if current.producer_epoch != producer_epoch and not bumped and not replaced:
        return ErrorCode.PRODUCER_FENCED
    again = bumped or replaced
    state = current.state
    if again and state in (_EMPTY, _ONGOING):
        return ErrorCode.PRODUCER_FENCED
    if state == _ONGOING:
        return _prepare(current, commit, new_producer_id, now_ms)
    if state.is_prepared:
        same = (state == _PREPARE_COMMIT) == commit
        return ErrorCode.CONCURRENT_TRANSACTIONS if same else ErrorCode.INVALID_TXN_STATE
    if again:
        done = state == (_COMPLETE_COMMIT if commit else _COMPLETE_ABORT)
        return ErrorCode.NONE if done else ErrorCode.INVALID_TXN_STATE
    return ErrorCode.INVALID_TXN_STATE if commit else _prepare(current, commit, new_producer_id, now_ms)


def _end_without_bump(
    current: TransactionMetadata, producer_id: int, producer_epoch: int, commit: bool, client_version: int, now_ms: int
) -> Outcome:
    if current.producer_id != producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if current.producer_epoch != producer_epoch:
        return ErrorCode.PRODUCER_FENCED
    state = current.state
    if state == _ONGOING:
        return TransactionMetadata(
            current.transactional_id,
            producer_id,
            producer_epoch,
            current.timeout_ms,
            _PREPARE_COMMIT if commit else _PREPARE_ABORT,
            current.partitions,
            current.start_ms,
            now_ms,
            client_version,
            producer_id,
            NO_PRODUCER_ID,
            current.last_producer_epoch,
        )
    if state == (_COMPLETE_COMMIT if commit else _COMPLETE_ABORT):
        return ErrorCode.NONE
    if state == (_PREPARE_COMMIT if commit else _PREPARE_ABORT):
        return ErrorCode.CONCURRENT_TRANSACTIONS
    return ErrorCode.INVALID_TXN_STATE


def _prepare(current: TransactionMetadata, commit: bool, new_producer_id: int | None, now_ms: int) -> Outcome:
    """Decide the end with a new epoch: the markers carry it and so fence what the producer still has in flight."""
    next_producer_id = NO_PRODUCER_ID
    if current.is_epoch_exhausted:
        if new_producer_id is None:
            return ErrorCode.CONCURRENT_TRANSACTIONS
        next_producer_id = new_producer_id
    return TransactionMetadata(
        current.transactional_id,
        current.producer_id,
        min(current.producer_epoch, LAST_EPOCH) + 1,
        current.timeout_ms,
        _PREPARE_COMMIT if commit else _PREPARE_ABORT,
        current.partitions,
        current.start_ms if current.state == _ONGOING else now_ms,
        now_ms,
        BUMPS_EPOCH,
        current.producer_id,
        next_producer_id,
        current.producer_epoch,
    )


def abort_and_fence(
    current: TransactionMetadata, now_ms: int, new_producer_id: int | None = None
) -> TransactionMetadata:
    """Abort an open transaction that its producer has not ended: another producer has started, or it timed out.

    The epoch is raised, so that the producer is fenced, whichever version it speaks. If that was the last epoch, the
    new producer id comes next; if none is at hand, the next producer gets one.
    """
    next_producer_id = new_producer_id if current.is_epoch_exhausted else None
    return TransactionMetadata(
        current.transactional_id,
        current.producer_id,
        min(current.producer_epoch, LAST_EPOCH) + 1,
        current.timeout_ms,
        _PREPARE_ABORT,
        current.partitions,
        current.start_ms,
        now_ms,
        BUMPS_EPOCH,
        current.producer_id,
        NO_PRODUCER_ID if next_producer_id is None else next_producer_id,
        current.producer_epoch,
    )


def complete(prepared: TransactionMetadata, now_ms: int) -> TransactionMetadata:
    """All markers are written."""
    replaced = prepared.next_producer_id != NO_PRODUCER_ID
    return TransactionMetadata(
        prepared.transactional_id,
        prepared.next_producer_id if replaced else prepared.producer_id,
        0 if replaced else prepared.producer_epoch,
        prepared.timeout_ms,
        COMPLETED[prepared.state],
        NO_PARTITIONS,
        prepared.start_ms,
        now_ms,
        prepared.client_version,
        prepared.producer_id,
        NO_PRODUCER_ID,
        prepared.last_producer_epoch,
    )


# --- time passes ---


def is_timed_out(current: TransactionMetadata, now_ms: int) -> bool:
    return current.state == _ONGOING and current.start_ms + current.timeout_ms < now_ms


def is_expired(current: TransactionMetadata, kept_ms: int, now_ms: int) -> bool:
    """Whether an id has been idle for so long that it is forgotten."""
    return current.state in PREDECESSORS[TransactionState.DEAD] and current.last_update_ms <= now_ms - kept_ms
