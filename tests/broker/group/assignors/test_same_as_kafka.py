"""The assignors against Apache Kafka 4.3.1's own classes, on random groups that change for several rounds.

Results are equal when every member has the same partitions. Where that depends on the order of Java's hash tables, both
sides are given the same: members and the topics that a member owns are added in the same order, subscriptions in the
order of the ids, and the partitions that a member owns of a topic in ascending order. (In a running Kafka, the order of
two partitions that share a slot of that set is the order in which the member got them. It decides which of the two goes
when the member has to give one away, and nothing else.) A member that Kafka leaves out has nothing.

    BARNABAS_ASSIGNED_GROUPS=5000 BARNABAS_SEED=1 .venv/bin/pytest tests/broker/group/assignors/test_same_as_kafka.py
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from random import Random
from typing import Any

import pytest

from barnabas.broker.controller.uuids import uuid_to_string
from barnabas.broker.group.assignors.hash_order import timeline_order
from barnabas.broker.group.assignors.spec import Assignment, GroupSpec, PartitionAssignorError
from tests.broker.group.assignors.groups import Round, rounds, shared_rounds
from tests.support.apache_kafka import run_java

pytestmark = pytest.mark.java

PROGRAM = Path(__file__).parents[3] / "java" / "Assignors.java"
GROUPS = int(os.environ.get("BARNABAS_ASSIGNED_GROUPS", "150"))
SEED = int(os.environ.get("BARNABAS_SEED", "7"))
ROUNDS = 5


def ask_kafka(calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    done = run_java(PROGRAM, input="".join(json.dumps(call) + "\n" for call in calls), timeout=600)
    return [json.loads(line) for line in done.stdout.splitlines()]


def call(each: Round) -> dict[str, Any]:
    spec, topics = each.spec, each.topics
    return {
        "do": "assign",
        "assignor": each.assignor,
        "assignable": None
        if each.assignable is None
        else {uuid_to_string(id): sorted(partitions) for id, partitions in each.assignable.items()},
        "type": spec.subscription_type.name,
        "topics": {uuid_to_string(id): topic.count for id, topic in topics.items()},
        "members": [
            {
                "id": member_id,
                "instance": member.instance_id,
                "rack": member.rack_id,
                "topics": list(map(uuid_to_string, sorted(member.topic_ids))),
                "owned": [(uuid_to_string(id), sorted(partitions)) for id, partitions in member.owned.items()],
            }
            for member_id, member in spec.members.items()
        ],
    }


def in_kafkas_words(result: Assignment | PartitionAssignorError, spec: GroupSpec) -> dict[str, Any]:
    if isinstance(result, PartitionAssignorError):
        return {"error": "PartitionAssignorException", "message": str(result)}
    assert result.keys() == spec.members.keys()
    return {
        "members": {
            member_id: {uuid_to_string(id): sorted(partitions) for id, partitions in by_topic.items()}
            for member_id, by_topic in result.items()
        },
        "askedForRacks": False,
    }


def test_every_member_gets_what_kafka_gives_it() -> None:
    played: list[tuple[int, Round]] = [
        (seed, each) for seed in range(SEED, SEED + GROUPS) for each in rounds(Random(seed), ROUNDS)
    ]
    played += [(seed, each) for seed in range(SEED, SEED + GROUPS) for each in shared_rounds(Random(seed), ROUNDS)]
    answers = ask_kafka([call(each) for _, each in played])
    assert len(answers) == len(played) == GROUPS * ROUNDS * 3
    for (seed, each), answer in zip(played, answers, strict=True):
        if answer.get("error") == "NoSuchElementException":
            # Kafka's simple assignor fails if members have partitions that are no longer assignable, and nobody is left
            # to take what others lack. A share group does not come to that.
            assert each.assignable is not None
            continue
        if "members" in answer:
            answer["members"] = {id: {} for id in each.spec.members} | answer["members"]
        assert in_kafkas_words(each.result, each.spec) == answer, f"{each.assignor}, seed {seed}"


def test_members_are_listed_as_kafkas_table_lists_them() -> None:
    random = Random(SEED)
    groups = [[random.randbytes(16).hex() for _ in range(size)] for size in range(200)]
    answers = ask_kafka([{"do": "order", "members": members} for members in groups])
    assert [answer["members"] for answer in answers] == list(map(timeline_order, groups))
