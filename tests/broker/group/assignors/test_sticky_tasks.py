"""The task assignor of streams groups: what it promises, and that it equals Apache Kafka 4.3.1's own class.

BARNABAS_ASSIGNED_GROUPS=5000 BARNABAS_SEED=1 .venv/bin/pytest tests/broker/group/assignors/test_sticky_tasks.py
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from barnabas.broker.group.assignors.sticky_tasks import GivenTasks, StreamsMemberSpec, SubtopologySpec, assign
from tests.support.apache_kafka import run_java

PROGRAM = Path(__file__).parents[3] / "java" / "TaskAssignors.java"
GROUPS = int(os.environ.get("BARNABAS_ASSIGNED_GROUPS", "120"))
SEED = int(os.environ.get("BARNABAS_SEED", "7"))
ROUNDS = 5

Given = dict[str, GivenTasks]


def new(process: str) -> StreamsMemberSpec:
    return StreamsMemberSpec(process, {}, {})


def having(given: GivenTasks, process: str) -> StreamsMemberSpec:
    """A member that was given these tasks."""
    active, standby = ({id: frozenset(partitions) for id, partitions in tasks.items()} for tasks in given)
    return StreamsMemberSpec(process, active, standby)


def test_members_get_equal_shares() -> None:
    given = assign({"a": new("p"), "b": new("q")}, {"0": SubtopologySpec(4, False), "1": SubtopologySpec(2, False)}, 0)
    assert [sum(map(len, each.active.values())) for each in given.values()] == [3, 3]


def test_who_had_a_task_keeps_it_and_a_newcomer_gets_its_share() -> None:
    topology = {"0": SubtopologySpec(4, False)}
    first = assign({"a": new("p")}, topology, 0)
    assert first == {"a": GivenTasks({"0": {0, 1, 2, 3}}, {})}
    second = assign({"a": having(first["a"], "p"), "b": new("q")}, topology, 0)
    assert second == {"a": GivenTasks({"0": {0, 1}}, {}), "b": GivenTasks({"0": {2, 3}}, {})}


def test_a_copy_is_in_another_process_and_only_of_tasks_with_state() -> None:
    topology = {"0": SubtopologySpec(2, True), "1": SubtopologySpec(2, False)}
    given = assign({"a": new("p"), "b": new("p"), "c": new("q")}, topology, 1)
    copies = {id: each.standby.get("0", set()) for id, each in given.items()}
    actives = {id: each.active.get("0", set()) for id, each in given.items()}
    assert not any("1" in each.standby for each in given.values())
    assert copies["c"] == actives["a"] | actives["b"]
    assert copies["a"] | copies["b"] == actives["c"]


def test_who_had_a_copy_takes_over() -> None:
    topology = {"0": SubtopologySpec(4, True)}
    given = assign({"a": new("p"), "b": new("q")}, topology, 1)
    survivor = assign({"b": having(given["b"], "q"), "c": new("r")}, topology, 1)
    assert survivor["b"].active["0"] >= given["b"].active["0"]
    assert len(survivor["b"].active["0"]) == len(survivor["c"].active["0"]) == 2


def rounds(random: Random) -> Iterator[tuple[dict[str, Any], Given]]:
    """What a group is given, one round after the other, while members come and go and topics grow."""
    ids = ["0", "1", "2", "ü-3", "𝄞", "\uffee", *map(str, range(10, 20))]
    topology = {
        id: SubtopologySpec(random.choice((1, 2, 3, 4, 7, 12, 33)), random.random() < 0.6)
        for id in random.sample(ids, random.choice((1, 1, 2, 3, 6, 14)))
    }
    processes = [random.randbytes(8).hex() for _ in range(random.choice((1, 2, 3, 5, 12, 30)))]
    copies = random.choice((0, 0, 1, 1, 2, 3))
    members: dict[str, StreamsMemberSpec] = {}
    for _ in range(ROUNDS):
        for _ in range(random.choice((1, 1, 2, 4, 20))):
            members[random.randbytes(8).hex()] = new(random.choice(processes))
        for gone in random.sample(list(members), random.randrange(len(members)) // 2):
            del members[gone]
        given = assign(members, topology, copies)
        asked = {
            "standbyReplicas": copies,
            "subtopologies": {id: {"tasks": each.tasks, "stateful": each.is_stateful} for id, each in topology.items()},
            "members": [
                {"id": id, "process": each.process_id, "active": _sorted(each.active), "standby": _sorted(each.standby)}
                for id, each in members.items()
            ],
        }
        yield asked, given
        members = {id: having(given[id], each.process_id) for id, each in members.items()}
        if random.random() < 0.3:
            grown = random.choice(list(topology))
            topology[grown] = topology[grown]._replace(tasks=topology[grown].tasks + random.choice((1, 5)))
        if random.random() < 0.2:
            copies = random.choice((0, 1, 2))


def _sorted(tasks: Any) -> dict[str, list[int]]:
    return {subtopology: sorted(partitions) for subtopology, partitions in tasks.items()}


@pytest.mark.java
def test_every_member_gets_what_kafka_gives_it() -> None:
    played = [(seed, *each) for seed in range(SEED, SEED + GROUPS) for each in rounds(Random(seed))]
    lines = "".join(json.dumps(asked) + "\n" for _, asked, _ in played)
    answers = [json.loads(line) for line in run_java(PROGRAM, input=lines, timeout=600).stdout.splitlines()]
    assert len(answers) == len(played) == GROUPS * ROUNDS
    for (seed, _, given), answer in zip(played, answers, strict=True):
        told = {
            id: {"active": _sorted(each.active), "standby": _sorted(each.standby), "warmup": {}}
            for id, each in given.items()
        }
        assert told == answer, f"seed {seed}"
