"""ShareFetch (key 78): records for a member of a share group, who acknowledges earlier ones with it.

Records belong to the member for a while, or until it acknowledges them; nobody else gets them meanwhile. Version 2 has
exact limits of records (KIP-1206), and lets members keep records for longer (KIP-1222): such a request fetches nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from barnabas.broker.handlers.share_acknowledging import refusal
from barnabas.broker.handlers.share_fetching import ShareFetching, refused
from barnabas.broker.server.request import Request
from barnabas.broker.share.sessions import FINAL_EPOCH, Place, SessionKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.share_fetch import ShareFetchRequest, ShareFetchResponse

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

_RENEWS_FROM_VERSION: Final = 2


def handle(broker: Broker, request: Request, message: ShareFetchRequest) -> ShareFetchResponse | None:
    error = refusal(broker, request.access, message.group_id, message.member_id)
    if error:
        return refused(error)
    renews = request.version >= _RENEWS_FROM_VERSION and message.is_renew_ack
    if renews and (message.max_bytes or message.min_bytes or message.max_records or message.max_wait_ms):
        return refused(ErrorCode.INVALID_REQUEST)
    key = SessionKey(message.group_id or "", message.member_id or "")
    session = broker.share_partitions.sessions.fetch(
        key,
        message.share_session_epoch,
        request.connection,
        list(_named(message)),
        [(topic.topic_id, index) for topic in message.forgotten_topics_data for index in topic.partitions],
        any(each.acknowledgement_batches for topic in message.topics for each in topic.partitions),
    )
    if session == ErrorCode.SHARE_SESSION_LIMIT_REACHED:
        _answer_later(broker, request, message.max_wait_ms)
        return None
    if isinstance(session, ErrorCode):
        return refused(session)
    is_final = message.share_session_epoch == FINAL_EPOCH
    places = () if is_final or renews else session.rotated(message.share_session_epoch)
    ShareFetching(broker, request, message, key, places, renews).begin()
    return None


def _named(message: ShareFetchRequest) -> Iterator[Place]:
    for topic in message.topics:
        for each in topic.partitions:
            yield topic.topic_id, each.partition_index


def _answer_later(broker: Broker, request: Request, wait_ms: int) -> None:
    """A member without a session has to wait as if it had one: otherwise it would ask all the time."""
    timer = broker.clock.call_later(
        max(wait_ms, 0) / 1000, lambda: request.answer(refused(ErrorCode.SHARE_SESSION_LIMIT_REACHED))
    )
    request.on_abandon = timer.cancel
