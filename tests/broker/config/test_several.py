"""broker.config.several: the configurations of several brokers in one process."""

import pytest

from barnabas.broker.config.errors import ConfigError
from barnabas.broker.config.several import configs_for


def test_one_broker_is_configured_as_it_always_was():
    (config,) = configs_for(1, None, ["log.dirs=data"])
    assert (config.node_id, config.data_dirs, config.default_replication_factor) == (0, ("data",), 1)


def test_several_have_consecutive_ids_ports_and_folders():
    listeners = "listeners=PLAINTEXT://127.0.0.1:9092,INSIDE://[::1]:0"
    protocols = "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,INSIDE:PLAINTEXT"
    configs = configs_for(3, None, [listeners, protocols, "node.id=5", "log.dirs=d"])
    assert [config.node_id for config in configs] == [5, 6, 7]
    assert [config.broker_listeners[0].port for config in configs] == [9092, 9093, 9094]
    assert [config.broker_listeners[1][2:4] for config in configs] == [("::1", 0)] * 3
    assert [config.data_dirs[0] for config in configs] == ["d", "d/brokers/6", "d/brokers/7"]


def test_advertised_ports_follow():
    assignments = ["listeners=PLAINTEXT://:9092", "advertised.listeners=PLAINTEXT://example.org:19092"]
    configs = configs_for(2, None, assignments)
    assert [config.broker_listeners[0].advertised_port for config in configs] == [19092, 19093]


def test_topics_have_up_to_three_replicas_unless_the_user_says_otherwise(tmp_path):
    factors = [configs_for(count)[0].default_replication_factor for count in (1, 2, 3, 5)]
    assert factors == [1, 2, 3, 3]
    assert configs_for(3, None, ["default.replication.factor=1"])[2].default_replication_factor == 1
    file = tmp_path / "server.properties"
    file.write_text("default.replication.factor=2\n")
    assert [config.default_replication_factor for config in configs_for(3, str(file))] == [2, 2, 2]


def test_around_zookeeper_each_broker_is_a_process():
    with pytest.raises(ConfigError, match=r"processes of their own: start each with its broker\.id"):
        configs_for(2, None, ["zookeeper.connect=localhost:2181"])
    assert len(configs_for(1, None, ["zookeeper.connect=localhost:2181"])) == 1
