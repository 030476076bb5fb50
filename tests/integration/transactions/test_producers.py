"""InitProducerId and FindCoordinator: which producer has an id, and which had it before."""

from barnabas.client.requests import lookup
from barnabas.protocol.api import ApiKey
from tests.integration.transactions.stories import Stories, tell
from tests.support.transaction_side import ABORT, COMMIT
from tests.support.transaction_versions import LATEST_CLASSIC, NEWEST

story = Stories()
GIVES_ITS_ID = (3, LATEST_CLASSIC, NEWEST)  # the ages at which InitProducerId has a producer's id and epoch


@story()
def the_coordinator_of_a_transactional_id(side):
    version = side.version(ApiKey.FIND_COORDINATOR)
    for name in (side.id, ""):
        yield side.of(ApiKey.FIND_COORDINATOR, lookup.find_coordinator(version, name, key_type=1))


@story()
def a_new_producer(side):
    yield side.init()
    yield side.describe_transactions()


@story()
def the_same_id_again(side):
    for _ in range(3):
        yield side.init()
    yield side.describe_transactions()


@story()
def a_producer_without_a_transactional_id(side):
    for _ in range(2):
        yield side.until(lambda: side.init_idempotent())


@story()
def ids_that_are_refused(side):
    yield side.init("")
    for timeout_ms in (-1, 0, 100_001, 100_000):
        yield side.init(timeout_ms=timeout_ms)
    yield side.describe_transactions()


@story()
def another_timeout_the_next_time(side):
    side.init(timeout_ms=50_000)
    yield side.init(timeout_ms=20_000)
    yield side.describe_transactions()


@story(GIVES_ITS_ID)
def with_its_own_id_and_epoch(side):
    side.init()
    for _ in range(2):
        yield side.init(producer_id=side.producer_id, epoch=side.epoch)
    yield side.init(producer_id=side.producer_id, epoch=side.epoch - 1)  # as if the last answer had been lost
    yield side.init(producer_id=side.producer_id, epoch=0)
    yield side.describe_transactions()


@story(GIVES_ITS_ID)
def with_ids_and_epochs_that_are_wrong(side):
    yield side.init(producer_id=12_345, epoch=0)
    yield side.describe_transactions()
    side.init()
    for producer_id, epoch in (
        (side.producer_id, side.epoch + 1),
        (side.producer_id, side.epoch + 2),
        (side.producer_id + 1_000_000, 0),
        (side.producer_id, -1),
        (-1, 0),
        (-1, side.epoch),
    ):
        yield side.init(producer_id=producer_id, epoch=epoch)
    yield side.describe_transactions()


@story(GIVES_ITS_ID)
def without_a_transactional_id_but_with_an_id(side):
    side.until(side.init_idempotent)
    yield side.init_idempotent(producer_id=side.producer_id, epoch=side.epoch)
    yield side.init_idempotent(producer_id=-1, epoch=3)


@story()
def with_a_transaction_under_way(side):
    """It is aborted. Meanwhile Apache Kafka lets the new one ask again, while Barnabas has done it by then."""
    side.init()
    side.prepare(0)
    side.produce(b"a")
    before = side.producer_id, side.epoch
    yield side.ready()
    side.settled()
    yield side.describe_transactions()
    yield side.produce(b"b", producer_id=before[0], producer_epoch=before[1])
    yield side.end(producer_id=before[0], producer_epoch=before[1])
    yield from side.both()


@story(GIVES_ITS_ID)
def with_its_own_transaction_under_way(side):
    side.init()
    side.prepare(0)
    side.produce(b"a")
    before = side.who()
    yield side.ready(producer_id=side.producer_id, epoch=side.epoch)
    side.settled()
    yield side.describe_transactions()
    for commit in (COMMIT, ABORT):
        yield side.end(commit, **before)
        side.settled()
    yield side.describe_transactions()
    yield from side.both()


@story()
def after_a_transaction(side):
    for commit in (True, False):
        side.ready()
        side.whole(b"a", commit=commit)
        yield side.init()
        yield side.describe_transactions()


@story()
def questions_about_unknown_ids(side):
    yield side.describe_transactions("unknown", "")
    side.init()
    yield side.describe_transactions(side.id, "unknown", side.id)


@story()
def lists(side):
    """By their state, by their producers, by how long they have been under way, by a pattern."""
    side.init()
    yield side.listed_transactions()
    first = side.producer_id
    side.whole(b"a")
    yield side.listed_transactions()
    side.id += "-other"
    side.init()
    side.prepare(1)
    side.produce(b"b", partition=1)
    side.id = side.id.removesuffix("-other")
    yield side.listed_transactions()
    for states in (["Ongoing"], ["Empty", "CompleteCommit"], ["Dead", "Ongoing"], ["unknown", "Ongoing"], ["ongoing"]):
        yield side.listed_transactions(states)
    for producers in ([first], [first, side.producer_id], [987_654_321]):
        yield side.listed_transactions(producers=producers)
        yield side.listed_transactions(["Ongoing"], producers)
    if side.version(ApiKey.LIST_TRANSACTIONS) >= 1:
        for duration in (0, 1_000_000):
            yield side.listed_transactions(duration_filter=duration)
    if side.version(ApiKey.LIST_TRANSACTIONS) >= 2:
        for pattern in (f"{side.id}.*", f"{side.id}", ".*-other", "nothing", "", None, "("):
            yield side.listed_transactions(transactional_id_pattern=pattern)
    side.id += "-other"
    side.end()
    side.settled()


@story.told
def test_same_answers(brokers, story, age):
    tell(brokers, story, age)
