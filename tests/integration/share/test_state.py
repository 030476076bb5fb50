"""The state of share partitions: what the share coordinator keeps, and whom it refuses."""

import random

import pytest

pytestmark = pytest.mark.java

AVAILABLE, ACKNOWLEDGED, ARCHIVED = 0, 2, 4
UNKNOWN = bytes(range(16))


def test_what_is_written_is_read(tell):
    def story(side):
        place = side.place()
        yield side.summary(place)
        yield side.initialize(place, state_epoch=3, start_offset=10)
        yield side.summary(place)
        yield side.read(place, leader_epoch=1)
        yield side.write(place, (10, 14, ACKNOWLEDGED, 1), (15, 19, AVAILABLE, 2), state_epoch=3, leader_epoch=1)
        yield side.write(
            place, (17, 17, ARCHIVED, 3), start_offset=12, delivery_complete_count=4, state_epoch=3, leader_epoch=1
        )
        yield side.read(place, leader_epoch=1)
        yield side.summary(place)

    tell(story)


def test_neighbours_in_the_same_state_become_one(tell):
    def story(side):
        place = side.place()
        yield side.initialize(place)
        yield side.read(place)
        for batch in ((0, 4, AVAILABLE, 1), (5, 9, AVAILABLE, 1), (20, 29, ACKNOWLEDGED, 1), (9, 20, AVAILABLE, 2)):
            yield side.write(place, batch)
            yield side.read(place)

    tell(story)


def test_a_partition_must_be_initialized_first(tell):
    def story(side):
        place = side.place()
        yield side.read(place)
        yield side.write(place, (0, 0, ACKNOWLEDGED, 1))
        yield side.delete(place)
        yield side.summary(place)

    tell(story)


def test_epochs_fence(tell):
    def story(side):
        place = side.place()
        yield side.initialize(place, state_epoch=5)
        yield side.initialize(place, state_epoch=4)
        yield side.read(place, leader_epoch=7)
        yield side.read(place, leader_epoch=6)
        yield side.write(place, (0, 0, ACKNOWLEDGED, 1), state_epoch=5, leader_epoch=6)
        yield side.write(place, (0, 0, ACKNOWLEDGED, 1), state_epoch=4, leader_epoch=7)
        yield side.write(place, (0, 0, ACKNOWLEDGED, 1), state_epoch=9, leader_epoch=9)
        yield side.read(place, leader_epoch=7)
        yield side.read(place, leader_epoch=-1)
        yield side.initialize(place, state_epoch=6, start_offset=-1)
        yield side.read(place, leader_epoch=6)
        yield side.summary(place)
        yield side.read(place, leader_epoch=7)

    tell(story)


def test_deleted_state_begins_anew(tell):
    def story(side):
        place = side.place()
        yield side.initialize(place, state_epoch=5, start_offset=3)
        yield side.delete(place)
        yield side.summary(place)
        yield side.delete(place)
        yield side.initialize(place, state_epoch=1)
        yield side.read(place)

    tell(story)


@pytest.mark.parametrize("place", [(UNKNOWN, 0), (None, 7), (None, -1)], ids=["topic", "partition", "negative"])
def test_what_is_not_there(tell, place):
    def story(side):
        topic_id, partition = place
        asked = (topic_id or side.place()[0], partition)
        yield side.initialize(asked)
        yield side.read(asked)
        yield side.write(asked)
        yield side.summary(asked)
        yield side.delete(asked)

    tell(story)


def test_requests_without_a_group_or_topics(tell):
    def story(side):
        place = side.place()
        side.group = ""
        yield side.initialize(place)
        yield side.read(place)
        yield side.write(place)
        yield side.summary(place)
        yield side.delete(place)
        side.group = "g"
        yield side.delete()
        yield side.summary()

    tell(story)


@pytest.mark.parametrize("key", ["", "g", "g:t", "g:t:0", "g:AAAAAAAAAAAAAAAAAAAAAA:x", "::0"])
def test_coordinators_of_what_is_no_share_partition(tell, key):
    def story(side):
        yield side.find_coordinator(key)

    tell(story)


def test_coordinators_of_share_partitions(tell):
    def story(side):
        found = side.find_coordinator("a:b:AAAAAAAAAAAAAAAAAAAAAA:0")
        yield found.node_id, found.error_code
        yield side.find_coordinator("g:AAAAAAAAAAAAAAAAAAAAAA:0", version=5)

    tell(story)


@pytest.mark.parametrize("seed", range(6))
def test_any_writes(tell, seed):
    """More writes than fit between two snapshots, of batches at random."""

    def story(side):
        made_up = random.Random(seed)
        place = side.place()
        yield side.initialize(place)
        start = 0
        for _ in range(30):
            batches = []
            for _ in range(made_up.randrange(1, 4)):
                first = start + made_up.randrange(30)
                state = made_up.choice((AVAILABLE, ACKNOWLEDGED, ARCHIVED))
                batches.append((first, first + made_up.randrange(12), state, made_up.randrange(1, 5)))
            start += made_up.choice((0, 0, 1, 4))
            yield side.write(place, *batches, start_offset=made_up.choice((-1, start)))
            # Apache Kafka leaves some neighbours in the same state apart, depending on the order in which they came.
            (read,) = side.read(place).results[0].partitions
            states = {
                offset: (batch.delivery_state, batch.delivery_count)
                for batch in read.state_batches
                for offset in range(batch.first_offset, batch.last_offset + 1)
            }
            yield read.error_code, read.start_offset, list(states.items())

    tell(story)
