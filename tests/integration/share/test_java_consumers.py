"""Java's share consumers: they see the same of Apache Kafka and of Barnabas."""

import pytest

from tests.support.java_client import run_scenario

pytestmark = pytest.mark.java


def test_share_consumers(brokers):
    found = run_scenario("ShareConsumers", f"127.0.0.1:{brokers.barnabas.port}", timeout=120)
    assert found == {
        "implicit": [*(f"r@{offset} 1" for offset in range(8))],
        "explicit": [
            *(f"r@{offset} 1 {said}" for offset, said in enumerate(["accept", "release", "reject"] * 2)),
            "r@1 2 accept",
            "r@4 2 accept",
        ],
        "limit": ["r@0 1 release", "r@0 2 release", "r@0 3 release", "r@1 1 accept"],
        "closed": ["r@0 2 accept", "r@1 2 accept"],
        "transactions": ["committed@2 1 accept", "committed@6 1 accept"],
    }
