"""AddOffsetsToTxn and TxnOffsetCommit: a group's offsets wait for the end of a transaction."""

from barnabas.client.requests import groups
from barnabas.protocol.api import ApiKey
from tests.integration.transactions.stories import Stories, tell
from tests.support.transaction_side import ABORT, COMMIT
from tests.support.transaction_versions import CLASSIC, NEWEST

story = Stories()
NAMES_A_MEMBER = (3, 4, 5)  # the ages at which TxnOffsetCommit tells who in the group commits


@story()
def offsets_of_a_transaction(side):
    side.init()
    for commit, offset in ((ABORT, 3), (COMMIT, 5), (ABORT, 7)):
        if not side.is_newest:
            yield side.add_offsets()
            yield side.describe_transactions()
        yield side.commit_offsets((0, offset))
        yield side.describe_transactions()
        yield side.committed()
        yield side.committed(require_stable=True)
        yield side.end(commit)
        side.settled()
        yield side.committed(require_stable=True)


@story((0,))
def offsets_as_every_client_asks_for_them(side):
    """Only those who want them to be stable are told that they are not."""
    side.init()
    side.prepare_offsets()
    side.commit_offsets((0, 5))
    for version in range(1, 9):
        yield side.committed(version=version)
        if version >= 7:
            yield side.committed(require_stable=True, version=version)
    everything = groups.offset_fetch(8, {side.group: None}, require_stable=True)
    yield side.ask(ApiKey.OFFSET_FETCH, everything, 8)
    side.end()
    side.settled()
    yield side.ask(ApiKey.OFFSET_FETCH, everything, 8)


@story()
def offsets_and_records(side):
    side.init()
    side.prepare(0)
    side.produce(b"a")
    side.prepare_offsets()
    side.commit_offsets((0, 1), (1, 2))
    yield side.describe_transactions()
    yield side.end()
    side.settled()
    yield side.committed(require_stable=True)
    yield from side.both()


@story()
def offsets_that_are_committed_several_times(side):
    side.init()
    side.prepare_offsets()
    for offset in (1, 2, 3):
        yield side.commit_offsets((0, offset))
    yield side.commit_offsets((1, 9))
    yield side.end()
    side.settled()
    yield side.committed(require_stable=True)


@story()
def offsets_of_two_transactions(side):
    """The group's own commit in between is overtaken by the transaction that ends later."""
    side.init()
    side.prepare_offsets()
    side.commit_offsets((0, 5))
    first = side.who()
    side.id += "-other"
    side.init()
    side.prepare_offsets()
    yield side.commit_offsets((0, 6))
    yield side.of(ApiKey.OFFSET_COMMIT, groups.offset_commit(side.group, (side.source, 0, 7)))
    yield side.committed()
    yield side.end()
    side.settled()
    yield side.committed()
    yield side.committed(require_stable=True)
    yield side.end(**first)
    side.settled(first["transactional_id"])
    yield side.committed(require_stable=True)


@story()
def groups_that_cannot_be_added(side):
    yield side.add_offsets(producer_id=4711, producer_epoch=0)
    side.init()
    yield side.add_offsets("")
    yield side.add_offsets(producer_epoch=side.epoch + 1)
    yield side.add_offsets(producer_epoch=side.epoch - 1)
    yield side.add_offsets(producer_id=side.producer_id + 1_000_000)
    yield side.add_offsets(transactional_id="unknown")
    yield side.add_offsets(transactional_id="")
    yield side.describe_transactions()


@story(CLASSIC)
def offsets_of_a_group_that_was_not_added(side):
    side.init()
    yield side.commit_offsets((0, 5))
    yield side.committed()


@story()
def offsets_that_cannot_be_committed(side):
    side.init()
    side.prepare_offsets()
    yield side.commit_offsets(("unknown", 0, 5))
    yield side.commit_offsets((7, 5), (0, 5))
    yield side.commit_offsets((0, 5), metadata="x" * 101)
    yield side.commit_offsets((0, 5), group="")
    yield side.commit_offsets((0, 5), producer_id=side.producer_id + 1_000_000)
    yield side.commit_offsets((0, 5), transactional_id="unknown")
    yield side.end()
    side.settled()
    yield side.committed(require_stable=True)


@story()
def offsets_of_a_producer_that_was_fenced(side):
    side.init()
    before = side.who()
    side.prepare_offsets()
    side.commit_offsets((0, 5))
    side.ready()
    side.settled()
    yield side.commit_offsets((0, 6), **before)
    yield side.add_offsets(**before)
    yield side.committed(require_stable=True)


@story(NAMES_A_MEMBER)
def offsets_by_members_and_by_others(side):
    side.stable("A")
    side.init()
    side.prepare_offsets()
    member = side.ids["A"]
    yield side.commit_offsets((0, 1), member=member, generation=1)
    yield side.commit_offsets((0, 2), member=member, generation=2)
    yield side.commit_offsets((0, 3), member=member, generation=0)
    yield side.commit_offsets((0, 4), member="nobody", generation=1)
    yield side.commit_offsets((0, 5), member="", generation=1)
    yield side.commit_offsets((0, 6), member=member, generation=-1)
    yield side.commit_offsets((0, 7), member=member, generation=1, instance="somebody")
    yield side.commit_offsets((0, 8))
    yield side.end()
    side.settled()
    yield side.committed(require_stable=True)


@story(NAMES_A_MEMBER)
def offsets_of_a_group_without_members(side):
    side.init()
    side.prepare_offsets()
    yield side.commit_offsets((0, 1), member="nobody", generation=1)
    yield side.commit_offsets((0, 2), member="nobody", generation=-1)
    yield side.commit_offsets((0, 3), member="", generation=5)
    yield side.commit_offsets((0, 4))
    yield side.describe()
    yield side.end()
    side.settled()
    yield side.committed(require_stable=True)
    yield side.describe()


@story((NEWEST,))
def a_group_with_offsets_that_are_pending_is_deleted(side):
    side.init()
    side.commit_offsets((0, 5))
    yield side.delete()
    yield side.end()
    side.settled()
    yield side.committed()


@story.told
def test_same_answers(brokers, story, age):
    tell(brokers, story, age)
