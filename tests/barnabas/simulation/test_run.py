"""Whole runs: the same seed gives the same run, nothing is found in a broker that keeps its promises, and a broker that
breaks one is caught."""

import asyncio
import gc
import os
import subprocess
import sys
from dataclasses import replace
from unittest import mock

import pytest

from barnabas.broker.group.consumer import reconciliation
from barnabas.simulation.__main__ import main
from barnabas.simulation.disk import Mount
from barnabas.simulation.loop import ProcessLoop
from barnabas.simulation.plan import ClientPlan, Fault, Plan, draw
from barnabas.simulation.run import run
from barnabas.simulation.shrink import shrink
from barnabas.simulation.story import tell
from barnabas.simulation.world import World

_PROGRAM = """
import sys
from barnabas.simulation.plan import draw
from barnabas.simulation.run import run
for seed, brokers in ((1, 1), (2, 3), (3, 4), (4, 5), (521, 3)):
    print(run(draw(seed, brokers=brokers, seconds=12)).digest)
"""


def _digests(hash_seed):
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", _PROGRAM], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.mark.slow
def test_the_same_seed_gives_the_same_run_to_the_byte():
    first, second = _digests("1"), _digests("2")
    assert len(set(first)) == 5
    assert first == second


@pytest.mark.parametrize("seed", range(1, 9))
def test_a_single_broker_keeps_its_promises(seed):
    result = run(draw(seed, brokers=1, seconds=30))
    assert not result.findings, "\n".join(tell(result))
    assert result.history.sends
    assert result.history.polls


@pytest.mark.slow
def test_members_of_consumer_groups_share_partitions_and_read_everything():
    seeds = [seed for seed in range(500, 560) if _members(draw(seed, seconds=15))]
    ownerships = 0
    for seed in seeds[:10]:
        result = run(draw(seed, seconds=15))
        assert not result.findings, "\n".join(tell(result))
        ownerships += len(result.history.ownerships)
    assert ownerships > 10


def test_a_coordinator_that_gives_away_what_somebody_still_has_is_caught():
    original = reconciliation._towards

    def too_early(member, target_epoch, target, subscribed, is_owned, owned):
        return original(member, target_epoch, target, subscribed, lambda *_: False, owned)

    plans = (draw(seed, seconds=15) for seed in range(500, 900))
    with mock.patch.object(reconciliation, "_towards", too_early):
        results = (run(plan) for plan in plans if _members(plan) > 1)
        found = next(result for result in results if result.findings)
    assert found.promise == "two owners"


@pytest.mark.parametrize("seed", range(10, 20))
def test_a_member_may_close_before_it_hears_that_its_session_ended(seed):
    """Its partitions are another member's by then. In seed 13, its goodbye is the first thing that is heard."""
    topics = {"topics": ["t"]}
    plan = Plan(
        seed=seed,
        brokers=1,
        seconds=12.0,
        topics=(("t", 3),),
        deletable=(),
        clients=(
            ClientPlan("producer", "p", topics | {"pause": (0.05, 0.1)}),
            ClientPlan("consumer protocol", "member0", topics | {"group": "g"}),
            ClientPlan("consumer protocol", "member1", topics | {"group": "g"}),
        ),
        faults=(Fault(3.0, "clients unheard", 1, 9.0),),
        replication=1,
        settings={
            "group.consumer.min.session.timeout.ms": "1000",
            "group.consumer.session.timeout.ms": "3000",
            "group.consumer.min.heartbeat.interval.ms": "100",
            "group.consumer.heartbeat.interval.ms": "300",
        },
    )
    result = run(plan)
    assert not result.findings, "\n".join(tell(result))
    assert any(each.fenced for each in result.history.ownerships)


def _members(plan):
    return [each.kind for each in plan.clients].count("consumer protocol")


def test_a_plan_survives_being_written_down():
    plan = draw(5)
    assert Plan.from_json(plan.to_json()) == plan


@pytest.mark.slow
def test_a_broker_that_does_not_sync_is_caught_and_its_story_shrinks():
    with mock.patch.object(Mount, "fsync"):
        for seed in range(1, 100):
            plan = draw(seed, brokers=1, seconds=30)
            if any(fault.kind == "power" for fault in plan.faults):
                result = run(plan)
                if result.findings:
                    break
        else:
            pytest.fail("nothing was found")
        shorter = shrink(result, lambda text: None, most_runs=15)
    assert shorter.promise == result.promise
    assert len(shorter.plan.faults) <= len(result.plan.faults)
    story = "\n".join(tell(shorter))
    assert "loses power" in story
    assert f"BROKEN: {result.promise}" in story


@pytest.mark.parametrize("broker", [1, 2, 3])
def test_producers_hardly_notice_that_a_disk_is_full(broker):
    """Others lead what that broker led, and nobody waits for it as a follower."""
    producer = ClientPlan("producer", "p", {"topics": ["t"], "pause": (0.01, 0.1)})
    plan = Plan(
        seed=broker,
        brokers=3,
        seconds=16.0,
        topics=(("t", 3),),
        deletable=(),
        clients=(producer,),
        faults=(Fault(5.0, "disk full", broker, 8.0),),
        replication=3,
    )
    result = run(plan)
    assert not result.findings, "\n".join(tell(result))
    during = [send for send in result.history.sends if 5.0 <= send.began <= 12.0]
    assert len(during) > 50
    assert {send.key[1] for send in during} == {0, 1, 2}
    assert max(send.ended - send.began for send in during) < 1.0


def test_a_run_can_be_drawn(tmp_path):
    page = tmp_path / "run.html"
    main(["--seed", "2", "--brokers", "1", "--seconds", "10", "--html", str(page), "--save", str(tmp_path / "plan")])
    text = page.read_text(encoding="utf-8")
    assert "<svg" in text
    assert "broker 1" in text
    assert "t0-0" in text
    assert main(["--plan", str(tmp_path / "plan")]) == 0


def test_the_last_words_of_dead_processes_count_for_nothing():
    async def work(world):
        try:
            await asyncio.sleep(100)
        finally:
            world.found("nobody speaks when all is over", "somebody does")

    with World(1) as world:
        world.process("p").create_task(work(world))
        world.run(1)
        digest = world.trace.digest
    assert not world.findings
    assert world.trace.digest == digest


def test_runs_leave_nothing_behind():
    """Thousands of them fit into one process: neither descriptors nor dead processes stay."""
    plan = replace(draw(3, seconds=6), faults=(Fault(3.0, "kill", 1, 0.5), Fault(4.5, "power", 2, 0.5)))

    def left() -> list[object]:
        return [each for each in gc.get_objects() if type(each) is ProcessLoop]  # others may be proxies of the dead

    run(plan)  # whatever is made once is there now
    descriptors, loops = len(os.listdir("/proc/self/fd")), len(left())  # of other tests
    run(plan)
    assert len(os.listdir("/proc/self/fd")) == descriptors
    assert len(left()) <= loops
