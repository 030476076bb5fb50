import pytest

from barnabas.broker.config import BrokerConfig, ConfigError


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"broker.id": "1", "node.id": "2"}, "node.id is 2 and broker.id is 1"),
        ({"log.retention.hours": "0"}, "log.retention.ms"),
        ({"log.retention.ms": "0", "log.retention.hours": "1"}, "log.retention.ms"),
        ({"log.cleaner.dedupe.buffer.size": "1048576"}, "log.cleaner.dedupe.buffer.size"),
        ({"log.cleaner.threads": "1000"}, "log.cleaner.dedupe.buffer.size"),
        ({"max.connections.per.ip": "0"}, "max.connections.per.ip"),
        ({"replica.fetch.wait.max.ms": "30001", "replica.lag.time.max.ms": "40000"}, "replica.socket.timeout.ms"),
        ({"replica.fetch.wait.max.ms": "30001", "replica.socket.timeout.ms": "40000"}, "replica.lag.time.max.ms"),
        ({"group.consumer.session.timeout.ms": "60001"}, "group.consumer.max.session.timeout.ms"),
        ({"group.consumer.session.timeout.ms": "44999"}, "group.consumer.min.session.timeout.ms"),
        ({"group.consumer.heartbeat.interval.ms": "4999"}, "group.consumer.min.heartbeat.interval.ms"),
        ({"group.consumer.heartbeat.interval.ms": "15001"}, "group.consumer.max.heartbeat.interval.ms"),
        ({"group.consumer.assignment.interval.ms": "15001"}, "group.consumer.max.assignment.interval.ms"),
        (
            {"group.consumer.min.session.timeout.ms": "1", "group.consumer.session.timeout.ms": "5000"},
            "group.consumer.heartbeat.interval.ms must be smaller",
        ),
        *[
            ({"zookeeper.connect": text}, "zookeeper.connect is .* must be a list of host:port")
            for text in ("", ":2181", "zk:abc", "zk:99999", "zk:1,", "zk:1kafka", "zk:1/../kafka", "[::1]:x/kafka")
        ],
        ({"inter.broker.protocol.version": "foo"}, "inter.broker.protocol.version is 'foo'"),
        ({"inter.broker.protocol.version": ""}, "inter.broker.protocol.version is ''"),
    ],
)
def test_settings_that_contradict_one_another(settings, words):
    with pytest.raises(ConfigError, match=words) as caught:
        BrokerConfig(settings)
    assert len(caught.value.problems) == 1


@pytest.mark.parametrize(
    "settings",
    [
        {"log.retention.ms": "-1"},
        {"log.retention.minutes": "-7"},
        {"log.retention.hours": "0", "log.retention.ms": "1"},
        {"max.connections.per.ip": "0", "max.connections.per.ip.overrides": "127.0.0.1:5"},
        {"broker.id": "3", "node.id": "3"},
        {"zookeeper.connect": "zk-1.example.com:2181, zk_2,[::1]:2181/kafka/a"},
        {"zookeeper.connect": "127.0.0.1:2181/"},
        {"inter.broker.protocol.version": "3.9"},
        {"inter.broker.protocol.version": "0.10.2-IV1"},
    ],
)
def test_settings_that_go_together(settings):
    BrokerConfig(settings)


def test_all_contradictions_are_reported_at_once():
    with pytest.raises(ConfigError) as caught:
        BrokerConfig({"log.retention.ms": "0", "max.connections.per.ip": "0", "listeners": "FOO://:1"})
    assert len(caught.value.problems) == 3
