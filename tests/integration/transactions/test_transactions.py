"""AddPartitionsToTxn, Produce and EndTxn, in the right order and in every wrong one."""

from barnabas.client.requests import data, transactions
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from tests.integration.transactions.stories import Stories, tell
from tests.support.batches import batch
from tests.support.polling import pause
from tests.support.transaction_side import ABORT, COMMIT
from tests.support.transaction_versions import CLASSIC, LATEST_CLASSIC, NEWEST

story = Stories()
ADDS_TOGETHER = (LATEST_CLASSIC, NEWEST)  # the ages at which AddPartitionsToTxn has several transactions


@story()
def a_transaction(side):
    for commit in (COMMIT, ABORT, COMMIT):
        side.ready()
        yield side.describe_transactions()
        if not side.is_newest:
            yield side.add(0, 1)
            yield side.describe_transactions()
        yield side.produce(b"a", b"b")
        yield side.produce(b"c", partition=1)
        yield side.produce(b"d")
        yield side.describe_transactions()
        yield from side.both()
        yield side.end(commit)
        side.settled()
        yield side.describe_transactions()
        yield from side.both()
        yield from side.both(partition=1)


@story()
def transactions_without_a_new_beginning(side):
    """One after the other with the same producer: the classic one keeps its epoch, the newest gets one each time."""
    side.init()
    for value, commit in ((b"a", COMMIT), (b"b", ABORT), (b"c", COMMIT)):
        yield side.whole(value, commit=commit)
        yield side.describe_transactions()
    yield from side.both()


# --- adding partitions ---


@story()
def partitions_that_cannot_be_added(side):
    yield side.add(0, producer_id=4711, producer_epoch=0)  # before there is such an id
    side.init()
    yield side.add(0, topic="unknown")
    yield side.add(0, 7)  # one of them is there
    yield side.add(0, producer_epoch=side.epoch + 1)
    yield side.add(0, producer_epoch=side.epoch - 1)
    yield side.add(0, producer_id=side.producer_id + 1_000_000)
    yield side.add(0, transactional_id="unknown")
    yield side.add(0, transactional_id="")
    yield side.add()
    yield side.describe_transactions()


@story()
def partitions_that_are_added_twice(side):
    side.init()
    for partitions in ((0,), (0,), (1,), (0, 1)):
        yield side.add(*partitions)
        yield side.describe_transactions()
    yield side.end()
    side.settled()
    yield from side.both()


@story(ADDS_TOGETHER)
def partitions_that_are_only_looked_for(side):
    side.init()
    yield side.add(0, verify_only=True)
    side.add(0)
    yield side.add(0, verify_only=True)
    yield side.add(0, 1, verify_only=True)
    yield side.add(0, verify_only=True, producer_epoch=side.epoch + 1)
    yield side.add(0, verify_only=True, producer_epoch=side.epoch - 1)
    yield side.add(0, verify_only=True, producer_id=side.producer_id + 1_000_000)
    yield side.add(0, verify_only=True, transactional_id="unknown")
    yield side.add(0, verify_only=True, topic="unknown")
    yield side.describe_transactions()


@story(ADDS_TOGETHER)
def partitions_of_several_transactions(side):
    side.init()
    first = side.who()
    side.id += "-other"
    side.init()
    second = side.who()
    message = AddPartitionsToTxnRequest(
        transactions=[
            transactions.transaction_to_add(*first.values(), (side.source, 0)),
            transactions.transaction_to_add(*second.values(), (side.source, 0), (side.source, 1)),
            transactions.transaction_to_add("unknown", 5, 0, (side.source, 0)),
            transactions.transaction_to_add("unknown too", 5, 0, ("unknown", 0), verify_only=True),
        ]
    )
    yield side.of(ApiKey.ADD_PARTITIONS_TO_TXN, message)
    yield side.describe_transactions(first["transactional_id"], second["transactional_id"])


# --- producing ---


@story()
def records_before_their_partition_is_added(side):
    side.init()
    yield side.produce(b"a")
    yield side.describe_transactions()
    yield from side.both()
    yield side.end()
    side.settled()
    yield from side.both()


@story(CLASSIC)
def records_for_another_partition_than_was_added(side):
    side.init()
    side.add(0)
    yield side.produce(b"a", partition=1)
    yield side.produce(b"a", partition=0)
    yield side.end()


@story()
def records_of_others(side):
    side.init()
    side.prepare(0)
    yield side.produce(b"a", producer_epoch=side.epoch + 1)
    yield side.produce(b"a", producer_id=side.producer_id + 1_000_000)
    yield side.produce(b"a", transactional_id="unknown")
    yield side.produce(b"a")
    yield side.produce(b"b", producer_epoch=side.epoch + 1)
    yield side.end()
    side.settled()
    yield from side.both()


@story()
def records_outside_of_the_transaction(side):
    """A transactional producer must not send plain batches while its transaction is under way."""
    side.init()
    side.prepare(0)
    side.produce(b"a")
    yield side.produce(b"b", transactional=False, sequence=1)
    yield side.end()
    side.settled()
    yield from side.both()


@story()
def records_without_a_transactional_id(side):
    """The batch says that it is transactional, the request does not say whose."""
    side.init()
    records = batch(b"a", producer_id=side.producer_id, producer_epoch=side.epoch, base_sequence=0, transactional=True)
    yield side.of(ApiKey.PRODUCE, data.produce((side.source, 0, records)))
    yield from side.both()


@story()
def records_that_come_twice_or_too_early(side):
    side.init()
    side.prepare(0)
    yield side.produce(b"a", sequence=0)
    yield side.produce(b"a", sequence=0)
    yield side.produce(b"c", sequence=2)
    yield side.produce(b"b", sequence=1)
    yield side.produce(b"a", sequence=0)
    yield side.end()
    side.settled()
    yield from side.both()


@story()
def the_first_records_with_a_sequence_that_is_not_the_first(side):
    side.init()
    side.prepare(0)
    yield side.produce(b"a", sequence=5)
    yield side.end()
    side.settled()
    yield from side.both()


@story(CLASSIC)
def records_after_the_end(side):
    side.init()
    side.whole(b"a")
    yield side.produce(b"b")
    side.add(0)
    yield side.produce(b"b")
    yield side.end()
    side.settled()
    yield from side.both()


@story((NEWEST,))
def records_after_the_end_with_the_epoch_from_before(side):
    side.init()
    before = side.epoch
    side.whole(b"a")
    yield side.produce(b"b", producer_epoch=before, sequence=1)
    yield side.produce(b"a", producer_epoch=before, sequence=0)
    yield side.describe_transactions()
    yield from side.both()


# --- ending ---


@story()
def ends_of_nothing(side):
    yield side.end(producer_id=4711, producer_epoch=0)
    side.init()
    for commit in (COMMIT, ABORT):
        yield side.end(commit)
        side.settled()
        yield side.describe_transactions()


@story()
def ends_by_others(side):
    side.init()
    side.prepare(0)
    side.produce(b"a")
    yield side.end(producer_epoch=side.epoch + 1)
    yield side.end(producer_epoch=side.epoch - 1)
    yield side.end(producer_id=side.producer_id + 1_000_000)
    yield side.end(transactional_id="unknown")
    yield side.end(transactional_id="")
    yield side.describe_transactions()
    yield side.end()
    side.settled()
    yield from side.both()


@story()
def ends_that_are_repeated(side):
    """As if the answer had been lost."""
    for commit in (COMMIT, ABORT):
        side.ready()
        side.prepare(0)
        side.produce(b"a")
        before = side.who()
        yield side.end(commit)
        side.settled()
        yield side.end(commit, **before)
        yield side.describe_transactions()
        yield side.end(not commit, **before)
        side.settled()
        yield side.describe_transactions()
    yield from side.both()


@story((NEWEST,))
def ends_without_anything_in_between(side):
    """The newest client may abort when it does not know whether something was added."""
    side.init()
    for commit in (ABORT, ABORT, COMMIT):
        yield side.end(commit)
        side.settled()
        yield side.describe_transactions()
    yield side.whole(b"a")
    yield side.end(ABORT)
    side.settled()
    yield side.describe_transactions()


@story()
def a_partition_without_records(side):
    side.init()
    side.add(0, 1)
    side.produce(b"a")
    yield side.end(ABORT)
    side.settled()
    yield from side.both()
    yield from side.both(partition=1)


@story((LATEST_CLASSIC, NEWEST))
def a_topic_that_is_deleted_meanwhile(side):
    """The transaction comes to its end where there is still something to end."""
    side.init()
    for commit in (COMMIT, ABORT):
        other = f"{side.source}-{commit}"
        side.create_topic(other)
        side.prepare(0)
        side.produce(b"kept")
        home, side.source = side.source, other
        side.prepare(0)
        yield side.produce(b"gone", sequence=0)
        side.delete_topic(other)
        side.source = home
        yield side.describe_transactions()
        yield side.end(commit)
        side.settled()
        yield side.describe_transactions()
    yield side.whole(b"the next")
    yield from side.both()


@story()
def too_late(side):
    """The coordinator aborts what takes longer than its producer has said."""
    side.init(timeout_ms=2000)  # long enough for the next two requests on a busy machine
    side.prepare(0)
    side.produce(b"a")
    before = side.who()
    while side.describe_transactions().transaction_states[0].transaction_state != "CompleteAbort":
        pause()
    yield side.describe_transactions()
    yield side.produce(b"b", sequence=1, **before)
    yield side.end(COMMIT, **before)
    yield side.end(ABORT, **before)
    yield from side.both()
    yield side.ready()
    yield side.describe_transactions()


@story.told
def test_same_answers(brokers, story, age):
    tell(brokers, story, age)
