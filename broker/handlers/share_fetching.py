"""One ShareFetch, until it is answered: what it acknowledges is written, and it waits until there are records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from barnabas.broker.clock import Timer
from barnabas.broker.handlers.current_leader import current_leader, endpoints_of
from barnabas.broker.handlers.share_acknowledging import Acknowledging, Results, acknowledgements_of, topic_error
from barnabas.broker.server.pieces import Steps
from barnabas.broker.server.request import Request
from barnabas.broker.share.error_texts import text_of
from barnabas.broker.share.key import SharePartitionKey
from barnabas.broker.share.partition import Given, SharePartition
from barnabas.broker.share.sessions import FINAL_EPOCH, INITIAL_EPOCH, Place, SessionKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.share_fetch import (
    AcquiredRecords,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ShareFetchableTopicResponse,
    ShareFetchRequest,
    ShareFetchResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

_RECORD_LIMIT: Final = 1  # an acquire mode
_ELSEWHERE: Final = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)


class ShareFetching:
    """It waits at its partitions for news of them, and at its share partitions for records that come back."""

    def __init__(
        self,
        broker: Broker,
        request: Request,
        message: ShareFetchRequest,
        key: SessionKey,
        places: Sequence[Place],
        renews: bool,
    ) -> None:
        self._broker = broker
        self._request = request
        self._message = message
        self._key = key
        self._places = places
        self._renews = renews
        self._acknowledged: Results | None = None  # until all is written
        self._is_fetched = False
        self._is_looked_at = False
        self._is_looking = False
        self._look_again = False
        self._is_expired = message.max_wait_ms <= 0
        self._is_over = False
        self._given: dict[Place, Given | ErrorCode] = {}
        self._shares: dict[Place, SharePartition] = {}
        self._timer: Timer | None = None

    def begin(self) -> None:
        self._request.on_abandon = self._stop_waiting
        self._broker.pieces.begin(self._begin())

    def _begin(self) -> Steps[None]:
        message = self._message
        acknowledging = Acknowledging(
            self._broker, self._request.access, self._key, self._request.version, self._renews, self._all_written
        )
        for topic in message.topics:
            for each in topic.partitions:
                if each.acknowledgement_batches:
                    place = topic.topic_id, each.partition_index
                    acknowledging.add(place, acknowledgements_of(each.acknowledgement_batches))
                yield
        acknowledging.all_added()
        for place in self._places:
            error = topic_error(self._broker, self._request.access, place)
            found = error or self._broker.share_partitions.get(SharePartitionKey(self._key.group_id, *place))
            if isinstance(found, ErrorCode):
                self._given[place] = found
            else:
                self._shares[place] = found
            yield
        if not self._shares or not message.max_records or not message.max_bytes:
            self._fetched()
            return
        for share in self._shares.values():
            share.waiters[self] = None
            share.partition.waiters[self] = None
        if not self._is_expired:
            self._timer = self._broker.clock.call_later(message.max_wait_ms / 1000, self._expired)
        self._look()

    def _all_written(self, results: Results) -> None:
        self._acknowledged = results
        self._answer_if_ready()

    # --- fetching ---

    def on_news(self, size: int) -> None:
        self._look()

    def _expired(self) -> None:
        self._is_expired = True
        self._look()

    def _look(self) -> None:
        """Look for records; again if something happened meanwhile."""
        if self._is_over or self._is_fetched:
            return
        if self._is_looking:
            self._look_again = True
            return
        self._is_looking = self._is_looked_at = True
        self._broker.pieces.begin(self._look_in_pieces())

    def _look_in_pieces(self) -> Steps[None]:
        try:
            while not self._is_over:
                self._look_again = False
                yield from self._acquire()
                if self._given or self._is_expired or self._is_over:
                    break
                if not self._look_again:
                    return
        finally:
            self._is_looking = False
        if not self._is_over:
            self._fetched()

    def _acquire(self) -> Steps[None]:
        message = self._message
        limit = min(message.max_bytes, self._broker.config.fetch_max_bytes)
        if self._request.meter is not None:
            limit = min(limit, self._request.meter.most_fetched)
        if not self._is_expired and message.min_bytes > 1:
            readable = 0
            for share in self._shares.values():
                readable += share.readable_bytes(limit)
                yield
            if readable < min(message.min_bytes, limit):
                return
        left = message.max_records
        max_bytes = max(limit // max(len(self._shares), 1), 1)
        is_exact = self._request.version >= 2 and message.share_acquire_mode == _RECORD_LIMIT
        for place, share in self._shares.items():
            if self._is_over or left <= 0:
                return
            given: Given | ErrorCode | None = share.error or share.acquire(
                self._key.member_id, left, message.batch_size, is_exact, max_bytes
            )
            if given is not None:
                self._given[place] = given
                if isinstance(given, Given):
                    left -= sum(each.last - each.first + 1 for each in given.acquired)
            yield

    # --- answering ---

    def _fetched(self) -> None:
        self._is_fetched = True
        self._leave_lines()
        self._answer_if_ready()

    def _answer_if_ready(self) -> None:
        if self._is_over or not self._is_fetched or self._acknowledged is None:
            return
        self._is_over = True
        if self._message.share_session_epoch == FINAL_EPOCH:
            self._broker.share_partitions.end_session(self._key)
        self._broker.server.dispatcher.go_on(self._request, self._answer(self._acknowledged))

    def _answer(self, acknowledged: Results) -> Steps[ShareFetchResponse]:
        topics: dict[bytes, list[PartitionData]] = {}
        leaders: set[int] = set()
        for place in dict.fromkeys([*self._given, *self._empty(), *acknowledged]):
            topics.setdefault(place[0], []).append(self._partition(place, acknowledged, leaders))
            yield
        return ShareFetchResponse(
            acquisition_lock_timeout_ms=self._broker.share_partitions.settings.lock_duration_ms(self._key.group_id),
            responses=[
                ShareFetchableTopicResponse(topic_id=topic_id, partitions=each) for topic_id, each in topics.items()
            ],
            node_endpoints=[
                NodeEndpoint(node_id=e.broker_id, host=e.host, port=e.port, rack=e.rack)
                for e in endpoints_of(self._broker, self._request.connection, leaders)
            ]
            if leaders
            else [],
        )

    def _empty(self) -> Iterator[Place]:
        """A session begins with an answer that names all its partitions which could have had something."""
        if self._message.share_session_epoch == INITIAL_EPOCH and self._is_looked_at:
            for place, share in self._shares.items():
                if share.can_acquire:
                    yield place

    def _partition(self, place: Place, acknowledged: Results, leaders: set[int]) -> PartitionData:
        given = self._given.get(place)
        error = given if isinstance(given, ErrorCode) else ErrorCode.NONE
        written = acknowledged.get(place, ErrorCode.NONE)
        named = LeaderIdAndEpoch(leader_id=0, leader_epoch=0)
        if error in _ELSEWHERE or written in _ELSEWHERE:
            leader = current_leader(self._broker, *place)
            if leader is not None:
                named = LeaderIdAndEpoch(leader_id=leader[0], leader_epoch=leader[1])
                leaders.add(leader[0])
        records: object = b""
        acquired: list[AcquiredRecords] = []
        if isinstance(given, Given):
            records = given.records
            acquired = [
                AcquiredRecords(first_offset=first, last_offset=last, delivery_count=count)
                for first, last, count in given.acquired
            ]
            self._shares[place].partition.traffic.bytes_out += given.records.size
        return PartitionData(
            partition_index=place[1],
            error_code=error,
            error_message=text_of(error) if error else None,
            acknowledge_error_code=written,
            acknowledge_error_message=text_of(written) if written else None,
            current_leader=named,
            records=records,  # type: ignore[arg-type]
            acquired_records=acquired,
        )

    def _stop_waiting(self) -> None:
        """The connection is gone. What was given with it comes back with the end of its session."""
        self._is_over = True
        self._leave_lines()

    def _leave_lines(self) -> None:
        for share in self._shares.values():
            share.waiters.pop(self, None)
            share.partition.waiters.pop(self, None)
        if self._timer is not None:
            self._timer.cancel()


def refused(error: ErrorCode) -> ShareFetchResponse:
    return ShareFetchResponse(
        error_code=error,
        error_message=text_of(error),
        acquisition_lock_timeout_ms=0,
        responses=[],
        node_endpoints=[],
    )
