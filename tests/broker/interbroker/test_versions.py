"""broker.interbroker.versions: what brokers of one cluster may send each other."""

import pytest

from barnabas.broker.config import BrokerConfig
from barnabas.broker.interbroker.versions import KAFKA_3_9, OURS, understood_by_all


@pytest.mark.parametrize(
    ("version", "understood"),
    [(None, OURS), ("3.9", KAFKA_3_9), ("3.9-IV0", KAFKA_3_9), ("0.11.0", KAFKA_3_9), ("4.3-IV0", OURS)],
)
def test_the_oldest_broker_decides(version, understood):
    config = BrokerConfig({} if version is None else {"inter.broker.protocol.version": version})
    assert understood_by_all(config) is understood
