"""Fetch sessions (KIP-227): a client names its partitions once, and responses contain only what is new."""

from __future__ import annotations

from typing import Any, Final

from barnabas.client.requests import data
from barnabas.client.requests.topics import topic_field
from barnabas.conformance.catalogue import Room
from barnabas.conformance.probe import Probe
from barnabas.conformance.verdict import NotApplicable
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.fetch import ForgottenTopic

room = Room("fetch-sessions", "Fetch sessions")

NO_SESSION: Final = -1
NEEDS: Final = ("Fetch 7+", "Produce")


class Session:
    """A session of this check over the partitions of one topic."""

    def __init__(self, probe: Probe, topic: str, *partitions: tuple[int, int]) -> None:
        self._probe = probe
        self._version = probe.version(ApiKey.FETCH)
        self._node = probe.leader(topic)
        self.name = probe.reference(topic, self._version >= 13)
        self.first = self.ask(0, *partitions, session_id=0)
        self.id: int = self.first.session_id
        if not self.id:
            raise NotApplicable("the broker gave no session")

    def ask(self, epoch: int, *partitions: tuple[int, int], session_id: int | None = None, **fields: Any) -> Any:
        parts = [(self.name, index, offset) for index, offset in partitions]
        request = data.fetch(
            *parts, session_epoch=epoch, session_id=self.id if session_id is None else session_id, **fields
        )
        return self._probe.ask(ApiKey.FETCH, request, self._version, node=self._node)

    def forget(self, epoch: int, *partitions: int) -> Any:
        forgotten = ForgottenTopic(**topic_field("topic", self.name), partitions=list(partitions))
        return self.ask(epoch, forgotten_topics_data=[forgotten])


def _partitions(answer: Any) -> list[int]:
    return sorted(each.partition_index for part in answer.responses for each in part.partitions)


def _topic(probe: Probe) -> str:
    return probe.topic_of_one_leader(3)


@room.check("begun", "KIP-227", *NEEDS)
def begun(probe: Probe) -> None:
    """Epoch 0 without a session id starts a session: the response has its id and all partitions."""
    session = Session(probe, _topic(probe), (0, 0), (1, 0))
    probe.expect_error("Fetch", session.first.error_code)
    probe.require(session.id > 0, "a session id", f"{session.id}")
    probe.expect("the partitions", _partitions(session.first), [0, 1])


@room.check("sessionless", "KIP-227", *NEEDS)
def sessionless(probe: Probe) -> None:
    """Epoch -1 without a session id requests no session: the response has all partitions and no id."""
    topic = _topic(probe)
    session = Session(probe, topic, (0, 0))
    answer = session.ask(NO_SESSION, (0, 0), (1, 0), session_id=0)
    probe.expect("the session id", answer.session_id, 0)
    probe.expect("the partitions", _partitions(answer), [0, 1])


@room.check("incremental", "KIP-227", *NEEDS)
def incremental(probe: Probe) -> None:
    """In a session, a response leaves out unchanged partitions and includes those with new records."""
    topic = _topic(probe)
    session = Session(probe, topic, (0, 0), (1, 0))
    answer = session.ask(1)
    probe.expect_error("epoch 1", answer.error_code)
    probe.expect("partitions without news", _partitions(answer), [])
    probe.append(topic, b"news", partition=1)
    answer = session.ask(2)
    probe.expect("partitions with news", _partitions(answer), [1])
    probe.expect("the session id", answer.session_id, session.id)


@room.check("unread-stays", "KIP-227", *NEEDS)
def unread_stays(probe: Probe) -> None:
    """Records are returned again until the client moves its offset past them."""
    topic = _topic(probe)
    session = Session(probe, topic, (0, 0))
    probe.append(topic, b"news")
    for epoch in (1, 2):
        probe.expect(f"the partitions in epoch {epoch}", _partitions(session.ask(epoch)), [0])
    probe.expect("the partitions after moving on", _partitions(session.ask(3, (0, 1))), [])


@room.check("partition-added", "KIP-227", *NEEDS)
def partition_added(probe: Probe) -> None:
    """A partition named in a later request belongs to the session from then on."""
    topic = _topic(probe)
    session = Session(probe, topic, (0, 0))
    session.ask(1, (2, 0))
    probe.append(topic, b"news", partition=2)
    probe.expect("the partitions", _partitions(session.ask(2)), [2])


@room.check("partition-forgotten", "KIP-227", *NEEDS)
def partition_forgotten(probe: Probe) -> None:
    """A forgotten partition is no longer in the responses."""
    topic = _topic(probe)
    session = Session(probe, topic, (0, 0), (1, 0))
    probe.append(topic, b"news", partition=0)
    probe.append(topic, b"news", partition=1)
    probe.expect("the partitions before", _partitions(session.ask(1)), [0, 1])
    probe.expect("the partitions after", _partitions(session.forget(2, 1)), [0])


@room.check("error-stays", "KIP-227", *NEEDS)
def error_stays(probe: Probe) -> None:
    """A partition with an error is in every response until the error is gone."""
    session = Session(probe, _topic(probe), (0, 99), (1, 0))
    for epoch in (1, 2):
        answer = session.ask(epoch)
        probe.expect(f"the partitions in epoch {epoch}", _partitions(answer), [0])
        found = probe.only(answer.responses, "partitions")
        probe.expect_error("the partition", found.error_code, ErrorCode.OFFSET_OUT_OF_RANGE)


@room.check("wrong-epoch", "KIP-227", *NEEDS)
def wrong_epoch(probe: Probe) -> None:
    """An epoch other than the next one, older or newer, gets INVALID_FETCH_SESSION_EPOCH."""
    session = Session(probe, _topic(probe), (0, 0))
    session.ask(1)
    for epoch in (1, 5):
        answer = session.ask(epoch)
        probe.expect_error(f"epoch {epoch} after 1", answer.error_code, ErrorCode.INVALID_FETCH_SESSION_EPOCH)


@room.check("unknown-id", "KIP-227", *NEEDS)
def unknown_id(probe: Probe) -> None:
    """An unknown session id gets FETCH_SESSION_ID_NOT_FOUND and no partitions."""
    session = Session(probe, _topic(probe), (0, 0))
    answer = session.ask(1, session_id=session.id ^ 0x2AAAAAA)
    probe.expect_error("another id", answer.error_code, ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
    probe.expect("the partitions", _partitions(answer), [])


@room.check("closed", "KIP-227", *NEEDS)
def closed(probe: Probe) -> None:
    """Epoch -1 with a session id ends the session: the id is unknown afterwards."""
    session = Session(probe, _topic(probe), (0, 0))
    answer = session.ask(NO_SESSION, (0, 0))
    probe.expect_error("the last request", answer.error_code)
    probe.expect("its session id", answer.session_id, 0)
    answer = session.ask(1)
    probe.expect_error("one more", answer.error_code, ErrorCode.FETCH_SESSION_ID_NOT_FOUND)


@room.check("begun-anew", "KIP-227", *NEEDS)
def begun_anew(probe: Probe) -> None:
    """Epoch 0 with a session id ends that session and starts another."""
    session = Session(probe, _topic(probe), (0, 0))
    answer = session.ask(0, (1, 0))
    probe.expect_error("epoch 0", answer.error_code)
    probe.require(answer.session_id not in (0, session.id), "another session", f"{answer.session_id}")
    probe.expect("its partitions", _partitions(answer), [1])
    probe.expect_error("the old one", session.ask(1).error_code, ErrorCode.FETCH_SESSION_ID_NOT_FOUND)


@room.check("any-connection", "KIP-227", *NEEDS)
def any_connection(probe: Probe) -> None:
    """A session belongs to its id, not to a connection: it can continue on another one."""
    topic = _topic(probe)
    session = Session(probe, topic, (0, 0))
    probe.node(probe.leader(topic)).close()
    probe.expect_error("the next epoch on another connection", session.ask(1).error_code)


@room.check("full-cache", "KIP-227", *NEEDS, alone=True)
def full_cache(probe: Probe) -> None:
    """When the broker has no room for another session, the request is still answered, and existing sessions are
    either served or unknown."""
    topic = _topic(probe)
    session = Session(probe, topic, (0, 0))
    version = probe.version(ApiKey.FETCH)
    wire = probe.connect(probe.target.nodes.get(probe.leader(topic)))
    begin = data.fetch((session.name, 0, 0), session_id=0, session_epoch=0)
    ids = []
    for _ in range(12):
        wire.send_bytes(b"".join(wire.frame(ApiKey.FETCH, begin, version) for _ in range(100)))
        for _ in range(100):
            answer = wire.answer()
            if answer.error_code or _partitions(answer) != [0]:
                probe.expect_error("one more session", answer.error_code)
                probe.expect("its partitions", _partitions(answer), [0])
            ids.append(answer.session_id)
    answer = session.ask(1)
    for session_id in filter(None, ids):
        end = data.fetch(session_id=session_id, session_epoch=NO_SESSION)
        wire.send(ApiKey.FETCH, end, version)
        wire.answer()
    allowed = ErrorCode.NONE, ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    probe.expect_error("the first session", answer.error_code, *allowed)
