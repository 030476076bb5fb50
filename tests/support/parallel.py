"""How the tests are spread over worker processes when pytest runs with `-n auto` (pytest-xdist), as in `make test`.

A unit of work is a file, so that its tests share what the file has started. Files that share more than that (a Spark
session, an Apache Kafka) make one unit together, and some tests are long enough to be a unit each. The long units start
first: a worker that began one of them last would keep all others waiting.
"""

from __future__ import annotations

import os

import pytest
from xdist.scheduler import LoadScopeScheduling

WORKERS_PER_CORE = 2  # half of the time, a test waits for a broker or a client that waits itself
# The quick tests hardly wait, and every worker takes seconds to import and collect them.
QUICK_WORKERS_PER_CORE = 1

# Folders and files that share what takes long to start.
TOGETHER = {
    "the Spark session": (
        "tests/pipeline/frames/test_plan.py",
        "tests/pipeline/segments/test_source.py",
        "tests/pipeline/sinks/",
        "tests/pipeline/test_batch.py",
        "tests/pipeline/test_command.py",
        "tests/pipeline/test_examples.py",
        "tests/pipeline/test_explaining.py",
        "tests/pipeline/test_running.py",
        "tests/pipeline/test_session.py",
        "examples/testing/test_pyspark.py",
    ),
    # An Apache Kafka, and in most of them a Barnabas beside it:
    "transactions": ("tests/integration/transactions/",),
    "groups": ("tests/integration/groups/",),
    "access": ("tests/integration/access/",),
    "share groups": (
        "tests/integration/share/test_any_story.py",
        "tests/integration/share/test_fetching.py",
        "tests/integration/share/test_group_settings.py",
        "tests/integration/share/test_java_consumers.py",
        "tests/integration/share/test_state.py",
    ),
    "produce and fetch": ("tests/integration/produce_and_fetch/",),
    "administration side by side": (
        "tests/integration/test_same_admin_answers_as_kafka.py",
        "tests/integration/test_same_user_answers_as_kafka.py",
        "tests/integration/test_same_quota_answers_as_kafka.py",
        "tests/integration/test_same_settings_answers_as_kafka.py",
    ),
    "commands against Apache Kafka": (
        "tests/integration/command_line/test_against_apache_kafka.py",
        "tests/integration/command_line/test_as_kafkas_tool.py",
        "tests/integration/command_line/test_quotas.py",
        "tests/integration/command_line/test_users.py",
    ),
}

# Files with long tests, each of which starts everything that it needs.
APART = (
    "tests/barnabas/simulation/test_museum.py",
    "tests/barnabas/simulation/test_seeds.py",
    "tests/barnabas/simulation/test_weather.py",
    "tests/integration/cluster/torture/",
    "tests/integration/exactly_once/",
    "tests/pipeline/test_cluster.py",
    "tests/pipeline/test_kills.py",
)

# The long units, longest first.
FIRST = (
    "the Spark session",
    "tests/integration/cluster/test_beside_apache_kafka.py",
    "tests/integration/cluster/torture/",
    "tests/pipeline/test_kills.py",
    "transactions",
    "tests/integration/clients/test_leaders_move.py",
    "tests/integration/test_kafka_tools_on_three_brokers.py",
    "tests/pipeline/test_cluster.py",
    "tests/integration/exactly_once/",
    "tests/fuzz/test_fuzz.py",
    "produce and fetch",
    "administration side by side",
    "groups",
    "share groups",
    "commands against Apache Kafka",
    "tests/barnabas/simulation/",
    "tests/integration/test_kafkas_data_directory.py",
    "tests/integration/console/",
    "tests/integration/test_conformance.py",
    "tests/packaging/",
    "tests/barnabas/test_pytest_plugin.py",
    "tests/protocol/test_between_brokers.py",
    "tests/storage/test_crashes.py",
    "tests/integration/",
    "tests/barnabas/",
)


def workers(*, quick: bool) -> int:
    return (QUICK_WORKERS_PER_CORE if quick else WORKERS_PER_CORE) * len(os.sched_getaffinity(0))


def unit(nodeid: str) -> str:
    """The unit of work that a test belongs to."""
    for name, paths in TOGETHER.items():
        if nodeid.startswith(paths):
            return name
    return nodeid if nodeid.startswith(APART) else nodeid.partition("::")[0]


def rank(nodeid: str) -> int:
    """When a test's unit starts; less is sooner."""
    name = unit(nodeid)
    return next((number for number, first in enumerate(FIRST) if name.startswith(first)), len(FIRST))


class Units(LoadScopeScheduling):
    """xdist's own schedule, with our units, in the order in which they were collected."""

    def __init__(self, config: pytest.Config, log: object = None) -> None:
        config.option.loadscopereorder = False
        super().__init__(config, log)

    def _split_scope(self, nodeid: str) -> str:
        return unit(nodeid)
