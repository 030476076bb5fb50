"""Exactly once, proved by torture: consume-transform-produce loops of three libraries, and whatever can go wrong.

The faults come at moments and in an order from a seed that is printed; BARNABAS_SEED repeats it,
BARNABAS_TORTURE_SECONDS makes it last longer, and BARNABAS_TORTURE_BROKER=kafka does the same to Apache Kafka.
"""

import random

import pytest

from tests.integration.exactly_once.proxy import CuttingProxy
from tests.integration.exactly_once.torture import (
    JAVA,
    Feed,
    Torture,
    new_broker,
    reckon,
    seconds_of_torture,
    seed,
    story_of,
)

LIBRARIES = ["kafka-python", "confluent-kafka", "aiokafka"]


@pytest.mark.timeout(900)
def test_through_killed_frozen_and_fenced_workers_and_a_broker_that_is_killed(tmp_path, capsys):
    number = seed()
    print(f"BARNABAS_SEED={number}")  # for the report of a failure
    with capsys.disabled():  # for those who watch; a worker of xdist shows nothing
        print(f"\nBARNABAS_SEED={number}")
    with new_broker(tmp_path / "data") as broker:
        torture = Torture(broker, broker.bootstrap, LIBRARIES, random.Random(number))
        torture.create_topics()
        feed = Feed(broker.bootstrap)
        with torture.running():
            torture.torment(seconds_of_torture(15), torture.faults, pause=(0.3, 1.5))
            reckon(torture, feed)
    with capsys.disabled():
        print(story_of(torture, feed))


@pytest.mark.timeout(900)
@pytest.mark.parametrize("libraries", [LIBRARIES, pytest.param([JAVA], marks=pytest.mark.java)], ids=["python", JAVA])
def test_through_answers_that_get_lost(tmp_path, capsys, libraries):
    """The same, while again and again the broker carries out a request and the client cannot know that.

    Java's client adds partitions by writing to them, and has a new epoch with each transaction (KIP-890).
    """
    number = seed()
    print(f"BARNABAS_SEED={number}")  # for the report of a failure
    with capsys.disabled():  # for those who watch; a worker of xdist shows nothing
        print(f"\nBARNABAS_SEED={number}")
    chance = random.Random(number)
    with CuttingProxy(chance) as proxy, new_broker(tmp_path / "data", advertised_port=proxy.port) as broker:
        proxy.broker_port = broker.port
        torture = Torture(broker, f"127.0.0.1:{proxy.port}", libraries, chance)
        torture.create_topics()
        feed = Feed(torture.bootstrap)
        with torture.running():

            def lose(share: float) -> None:
                proxy.share = share

            lose(0.05)
            losses = {"few answers lost": lambda: lose(0.02), "more": lambda: lose(0.1), "many": lambda: lose(0.3)}
            torture.torment(seconds_of_torture(15), {**losses, **torture.faults}, pause=(0.3, 1.5))
            torture.supervise_until(lambda: proxy.cut.total() > 10, "ten lost answers")
            lose(0.0)
            reckon(torture, feed)
    with capsys.disabled():
        print(story_of(torture, feed), dict(proxy.cut))
