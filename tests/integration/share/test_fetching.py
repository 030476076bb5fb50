"""Records of share groups: who gets which, and what becomes of them."""

import pytest

from barnabas.client.requests.shares import ACCEPT, REJECT, RELEASE
from barnabas.protocol.errors import ErrorCode
from tests.support.polling import pause

pytestmark = pytest.mark.java

WAIT = {"max_wait_ms": 10_000, "min_bytes": 1}
SHORT = {"max_wait_ms": 1000, "min_bytes": 1}  # where Apache Kafka waits for it all


def begin(side, *batches, topic, start_offset=0):
    """A topic with batches of so many records, which the story's group reads from the beginning."""
    place = side.place(topic)
    side.produce(place, *batches, topic=topic)
    # Apache Kafka's share coordinator hears of a new topic a little later than its other parts.
    while side.initialize(place, start_offset=start_offset).results[0].partitions[0].error_code:
        pause()
    return place


def test_records_are_acquired_and_accepted(tell):
    def story(side):
        place = begin(side, 3, 2, topic="accepted")
        yield side.fetch("m", 0, place, **WAIT)
        yield side.fetch("m", 1)
        yield side.acknowledge("m", 2, {place: [(0, 4, [ACCEPT])]})
        yield side.read(place)
        yield side.summary(place)
        yield side.fetch("m", 3)
        yield side.fetch("m", -1)
        yield side.fetch("m", 4)

    tell(story)


def test_released_records_come_again(tell):
    def story(side):
        place = begin(side, 3, 3, topic="released")
        yield side.fetch("m", 0, place, **WAIT)
        yield side.acknowledge("m", 1, {place: [(1, 3, [RELEASE]), (4, 4, [ACCEPT]), (5, 5, [REJECT])]})
        yield side.read(place)
        yield side.fetch("m", 2, **WAIT)
        yield side.acknowledge("m", 3, {place: [(0, 3, [ACCEPT, ACCEPT, RELEASE, ACCEPT])]})
        yield side.read(place)
        yield side.fetch("m", 4, **WAIT)
        yield side.summary(place)

    tell(story)


def test_two_members_share_a_partition(tell):
    def story(side):
        place = begin(side, 2, 2, 2, topic="two")
        yield side.fetch("a", 0, place, max_records=3, **WAIT)
        yield side.fetch("b", 0, place, max_records=1, **WAIT)
        yield side.fetch("b", 1)
        yield side.acknowledge("b", 2, {place: [(0, 0, [ACCEPT])]})
        yield side.acknowledge("b", 3, {place: [(4, 5, [RELEASE])]})
        yield side.fetch("a", 1, **WAIT)

    tell(story)


def test_acknowledgements_of_what_was_never_acquired(tell):
    def story(side):
        place = begin(side, 3, 3, topic="never")
        yield side.fetch("m", 0, place, max_records=2, **WAIT)
        yield side.acknowledge("m", 1, {place: [(3, 3, [ACCEPT])]})
        yield side.acknowledge("m", 2, {place: [(2, 4, [ACCEPT])]})
        yield side.acknowledge("m", 3, {place: [(100, 104, [ACCEPT])]})
        yield side.acknowledge("m", 4, {place: [(0, 1, [ACCEPT])]})
        yield side.acknowledge("m", 5, {place: [(0, 1, [ACCEPT])]})
        yield side.acknowledge("m", 6, {place: [(1, 2, [ACCEPT])]})
        yield side.acknowledge("m", 7, {place: [(2, 2, [ACCEPT])]})
        yield side.read(place)

    tell(story)


@pytest.mark.parametrize(
    "batches",
    [
        [(1, 0, [ACCEPT])],
        [(0, 0, [])],
        [(0, 2, [ACCEPT, ACCEPT])],
        [(0, 1, [ACCEPT]), (0, 0, [ACCEPT])],
        [(0, 0, [ACCEPT]), (0, 0, [ACCEPT])],
        [(0, 0, [5])],
        [(0, 0, [-1])],
        [(0, 0, [4])],
        [(0, 2, [0])],
        [(0, 2, [0, 1, 2])],
        [],
    ],
    ids=str,
)
@pytest.mark.parametrize("version", [1, 2])
def test_odd_acknowledgements(tell, batches, version):
    def story(side):
        place = begin(side, 3, topic=f"odd-{version}")
        yield side.fetch("m", 0, place, **WAIT).error_code
        yield side.acknowledge("m", 1, {place: batches}, version=version)
        yield side.fetch("m", 2, acknowledgements={place: batches}, version=version)
        states = side.read(place).results[0].partitions[0].state_batches
        yield states
        side.leave("m")

    tell(story)


def test_epochs_of_sessions(tell):
    def story(side):
        place = begin(side, 1, topic="epochs")
        yield side.fetch("m", 1, place)
        yield side.fetch("m", -1, place)
        yield side.acknowledge("m", 0)
        yield side.acknowledge("m", 1)
        yield side.acknowledge("m", -1)
        yield side.fetch("m", 0, acknowledgements={place: [(0, 0, [ACCEPT])]})
        yield side.fetch("m", 0, place, **WAIT)
        yield side.fetch("m", 0, place).error_code
        yield side.fetch("m", 2)
        yield side.acknowledge("m", 2)
        yield side.acknowledge("m", 1)
        yield side.fetch("m", 2)
        yield side.acknowledge("m", -1)
        yield side.fetch("m", 3)

    tell(story)


def test_odd_requests(tell):
    def story(side):
        place = begin(side, 1, topic="odd-requests")
        group = side.group
        for member in ("", None, "x" * 36, "x" * 37):
            yield side.fetch(member, 0, place, **WAIT)
            yield side.acknowledge(member, 1)
        side.group = None
        yield side.fetch("m", 0, place)
        yield side.acknowledge("m", 1)
        side.group = group
        yield side.fetch("m", 0, place, max_records=0)
        yield side.fetch("m", 0, place, max_bytes=0)
        yield side.fetch("m", 0)
        yield side.fetch("m", 1, is_renew_ack=True)
        yield side.fetch("m", 1, is_renew_ack=True, max_bytes=0, max_records=0)

    tell(story)


def test_partitions_that_are_not_there(tell):
    def story(side):
        place = begin(side, 1, topic="there")
        missing = place[0], 7
        yield side.fetch("m", 0, missing)
        yield side.fetch("m", 1)
        yield side.fetch("m", 2, forgotten=[missing])
        yield side.acknowledge("m", 3, {missing: [(0, 0, [ACCEPT])]})
        yield side.acknowledge("m", 4, {place: [(0, 0, [ACCEPT])]})

    tell(story)


def test_what_was_not_initialized(tell):
    def story(side):
        place = side.place("uninitialized")
        yield side.fetch("m", 0, place, **SHORT)

    tell(story)


def test_a_member_that_leaves_gives_back_what_it_has(tell):
    def story(side):
        place = begin(side, 2, 2, topic="leaves")
        yield side.fetch("a", 0, place, max_records=2, **SHORT)
        yield side.fetch("b", 0, place, **SHORT)
        yield side.acknowledge("a", 1, {place: [(1, 1, [ACCEPT])]})
        yield side.acknowledge("a", -1)
        yield side.fetch("b", 1, **SHORT)
        side.leave("b")
        yield side.fetch("c", 0, place, **SHORT)

    tell(story)


def test_the_delivery_limit(tell):
    def story(side):
        place = begin(side, 4, topic="limit")
        epoch = 0
        for _ in range(12):
            fetched = side.fetch("m", epoch, place, max_wait_ms=500, min_bytes=1)
            yield fetched
            epoch += 1
            for topic in fetched.responses:
                for each in topic.partitions:
                    for acquired in each.acquired_records:
                        batches = [(acquired.first_offset, acquired.last_offset, [RELEASE])]
                        side.acknowledge("m", epoch, {place: batches})
                        epoch += 1
        yield side.read(place)

    tell(story)


def test_exact_limits_of_records(tell):
    def story(side):
        place = begin(side, 5, 5, topic="exact")
        yield side.fetch("m", 0, place, max_records=3, share_acquire_mode=1, **WAIT)
        yield side.fetch("m", 1, max_records=4, share_acquire_mode=1, **WAIT)
        yield side.fetch("m", 2, max_records=1, **WAIT)
        yield side.acknowledge("m", 3, {place: [(1, 5, [RELEASE])]})
        yield side.fetch("m", 4, max_records=2, share_acquire_mode=1, **WAIT)
        yield side.read(place)

    tell(story)


def test_batches_of_a_size(tell):
    def story(side):
        place = begin(side, 2, 3, 1, 4, 2, topic="sizes")
        answer = side.fetch("m", 0, place, batch_size=4, **WAIT)
        yield [(each.first_offset, each.last_offset) for each in answer.responses[0].partitions[0].acquired_records]

    tell(story)


def test_renewed_records(tell):
    def story(side):
        place = begin(side, 3, topic="renewed")
        yield side.fetch("m", 0, place, **WAIT)
        yield side.acknowledge("m", 1, {place: [(0, 1, [4])]})
        yield side.acknowledge("m", 2, {place: [(0, 2, [4, 1, 4])]}, is_renew_ack=True)
        yield side.acknowledge("m", 3, {place: [(1, 1, [4])]}, is_renew_ack=True)
        yield side.fetch(
            "m", 4, acknowledgements={place: [(0, 0, [4]), (2, 2, [1])]}, is_renew_ack=True, max_bytes=0, max_records=0
        )
        yield side.read(place)

    tell(story)


def test_deleted_records(tell):
    def story(side):
        place = begin(side, 2, 2, 2, topic="deleted")
        yield side.fetch("m", 0, place, max_records=4, **WAIT)
        side.delete_records("deleted", 3)
        yield side.acknowledge("m", 1, {place: [(0, 3, [RELEASE])]})
        answer, _ = side.fetch_until("m", 2)
        yield answer

    tell(story)


def test_topics_that_nobody_knows(brokers):
    """Apache Kafka 4.3.1 trips over them, and answers UNKNOWN_SERVER_ERROR for the whole request."""
    side = brokers.barnabas
    side.begin("unknown-topics")
    unknown = bytes(range(16)), 0
    (fetched,) = side.fetch("m", 0, unknown).responses[0].partitions
    (acknowledged,) = side.acknowledge("m", 1, {unknown: [(0, 0, [ACCEPT])]}).responses[0].partitions
    assert fetched.error_code == acknowledged.error_code == ErrorCode.UNKNOWN_TOPIC_ID
