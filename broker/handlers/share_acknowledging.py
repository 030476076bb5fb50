"""What members of share groups say about records, in ShareFetch and ShareAcknowledge."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from barnabas.broker.security.authorizer import Access
from barnabas.broker.share.in_flight import Acknowledgement, AcknowledgeType
from barnabas.broker.share.key import SharePartitionKey
from barnabas.broker.share.sessions import Place, SessionKey
from barnabas.protocol.acls import AclOperation
from barnabas.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

LONGEST_MEMBER_ID: Final = 36
RENEWS_FROM_VERSION: Final = 2

Results = Mapping[Place, ErrorCode]


def refusal(broker: Broker, access: Access, group_id: str | None, member_id: str | None) -> ErrorCode:
    """Why a request is not served at all."""
    if not broker.understood.share_version:
        return ErrorCode.UNSUPPORTED_VERSION
    if group_id is None:
        return ErrorCode.INVALID_REQUEST
    if not access.group(AclOperation.READ, group_id):
        return ErrorCode.GROUP_AUTHORIZATION_FAILED
    if not member_id or len(member_id) > LONGEST_MEMBER_ID:
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.NONE


def topic_error(broker: Broker, access: Access, place: Place) -> ErrorCode:
    """Why a partition is not served."""
    topic_id, index = place
    topic = broker.cluster.topic_by_id(topic_id)
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    if not access.topic(AclOperation.READ, topic.name):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return ErrorCode.NONE if 0 <= index < len(topic.partitions) else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def acknowledgements_of(batches: Sequence[Any]) -> list[Acknowledgement]:
    return [Acknowledgement(each.first_offset, each.last_offset, each.acknowledge_types) for each in batches]


def are_valid(acknowledgements: Sequence[Acknowledgement], version: int, renews: bool) -> bool:
    highest = AcknowledgeType.RENEW if version >= RENEWS_FROM_VERSION else AcknowledgeType.REJECT
    before = -1
    for first, last, types in acknowledgements:
        if first > last or first < before or not types:
            return False
        if len(types) > 1 and last - first != len(types) - 1:
            return False
        if min(types) < 0 or max(types) > highest:
            return False
        if not renews and AcknowledgeType.RENEW in types:
            return False
        before = last
    return True


class Acknowledging:
    """The acknowledgements of one request, until each is written or refused."""

    def __init__(
        self,
        broker: Broker,
        access: Access,
        key: SessionKey,
        version: int,
        renews: bool,
        then: Callable[[Results], None],
    ) -> None:
        self._broker = broker
        self._access = access
        self._key = key
        self._version = version
        self._renews = renews
        self._then = then
        self._results: dict[Place, ErrorCode] = {}
        self._left = 1  # and one more for each that is under way

    def add(self, place: Place, acknowledgements: Sequence[Acknowledgement]) -> None:
        self._left += 1
        done = partial(self._done, place)
        error = ErrorCode.NONE
        if not are_valid(acknowledgements, self._version, self._renews):
            error = ErrorCode.INVALID_REQUEST
        error = error or topic_error(self._broker, self._access, place)
        if error:
            done(error)
            return
        share = self._broker.share_partitions.find(SharePartitionKey(self._key.group_id, *place))
        if share is None:
            done(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        else:
            share.acknowledge(self._key.member_id, acknowledgements, done)

    def all_added(self) -> None:
        self._one_less()

    def _done(self, place: Place, error: ErrorCode) -> None:
        self._results[place] = error
        self._one_less()

    def _one_less(self) -> None:
        self._left -= 1
        if not self._left:
            self._then(self._results)
