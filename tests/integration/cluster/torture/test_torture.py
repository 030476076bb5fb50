"""Three brokers around a real ZooKeeper, and whatever can go wrong: nothing that was acknowledged is lost.

The faults come in an order and at moments from a seed that is printed; BARNABAS_SEED repeats it as far as processes can
be repeated, BARNABAS_TORTURE_SECONDS makes it last longer, and BARNABAS_TORTURE_BROKER=kafka does it to Apache Kafka.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.integration.cluster.torture.torture import LIBRARIES, TOPIC, Torture, make, seconds_of_torture, seed
from tests.support.cluster import SESSION_SECONDS, Cluster, every_mix, not_yet
from tests.support.history import Found, Problem

pytestmark = [
    pytest.mark.java,
    pytest.mark.timeout(seconds_of_torture(60) + 900),
    pytest.mark.skipif(make() == "barnabas" and not_yet() is not None, reason=str(not_yet())),
]
thorough = pytest.mark.skipif(not every_mix(), reason="BARNABAS_ALL_MIXES=1 runs it")


def test_nothing_is_lost_doubled_or_torn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    number = seed()
    with capsys.disabled():
        print(f"\nBARNABAS_SEED={number}, brokers: {make()}")
    found: list[Found] = []
    # Whoever looks for the reason of a failure finds the brokers' logs and data there.
    folder = tmp_path / "brokers"
    with Cluster([make()] * 3, folder=folder) as cluster, Torture(cluster, tmp_path, number) as torture:
        try:
            torture.torment(seconds_of_torture(60), torture.faults.all)
            found = torture.reckon()
            differing = torture.replicas_that_differ()
        finally:
            last = [f"--- {each.task.library} said last:\n{each.last_words()}" for each in torture.clients]
            account = "\n".join([*torture.faults.story, torture.summary(), *map(str, found), *last])
            print(account)  # for the report of a failure
            with capsys.disabled():  # for those who watch; a worker of xdist shows nothing
                print(account)
        assert found == []
        assert torture.second_opinion == []
        assert differing == []
        if make() == "barnabas":  # Apache Kafka ends when ZooKeeper is away at a bad moment
            assert cluster.ended_by_themselves == []


@thorough
@pytest.mark.parametrize("library", LIBRARIES)
def test_what_one_broker_alone_has_acknowledged_is_lost_and_found_out(tmp_path: Path, library: str) -> None:
    """The torture would notice a loss: with acks=1, a leader that is cut off acknowledges what nobody else has."""
    with Cluster([make()] * 3) as cluster:
        roles = ("plain", "member")
        with Torture(cluster, tmp_path, 1, libraries=[library], acks="1", roles=roles) as torture:
            leader = cluster.leader(TOPIC, 0)
            assert leader is not None
            time.sleep(5)
            cluster.isolate(leader.id)
            time.sleep(SESSION_SECONDS + 3)
            cluster.network.heal()
            found = torture.reckon()
            assert {each.problem for each in found} >= {Problem.LOST_WRITE}, torture.summary()
            assert torture.replicas_that_differ() == []


@thorough
def test_what_an_unclean_leader_never_had_is_lost_and_found_out(tmp_path: Path) -> None:
    """The same with acks=all, where settings allow a replica that was not in sync to lead."""
    unsafe = {"unclean.leader.election.enable": "true", "min.insync.replicas": "1"}
    with Cluster([make()] * 3) as cluster:
        roles = ("plain", "idempotent", "member")
        libraries = ["confluent-kafka"]
        with Torture(cluster, tmp_path, 1, libraries=libraries, roles=roles, topic_settings=unsafe) as torture:
            leader = cluster.leader(TOPIC, 0)
            assert leader is not None
            others = [each for each in cluster.brokers if each is not leader]
            time.sleep(5)
            for each in others:
                each.kill()
            time.sleep(SESSION_SECONDS + 5)  # time to acknowledge alone
            leader.kill()
            cluster.start_brokers(others)
            time.sleep(5)
            cluster.start_brokers([leader])
            found = torture.reckon()
            assert {each.problem for each in found} >= {Problem.LOST_WRITE}, torture.summary()
