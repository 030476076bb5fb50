"""The Java client, which is the reference for others, against our broker."""

from pathlib import Path

import pytest

from tests.support.broker_process import BrokerProcess
from tests.support.java_client import run_scenario

pytestmark = pytest.mark.java


def test_the_admin_client_connects_and_lists(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "data") as broker:
        found = run_scenario("DescribeCluster", broker.bootstrap)
        assert found["nodes"] == [{"id": found["controller"], "host": "127.0.0.1", "port": broker.port}]
        assert found["topics"] == []
        assert found["cluster_id"]
