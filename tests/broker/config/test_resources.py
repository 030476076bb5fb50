from barnabas.broker.config import BrokerConfig, ConfigSource
from barnabas.broker.config.resources import describe_client_metrics, describe_group, describe_loggers


def test_a_group_has_what_its_broker_says():
    broker = BrokerConfig({"group.consumer.session.timeout.ms": "50000"})
    entries = {entry.name: entry for entry in describe_group(broker)}
    session = entries["consumer.session.timeout.ms"]
    assert (session.value, session.source) == ("50000", ConfigSource.STATIC_BROKER_CONFIG)
    assert [synonym.name for synonym in session.synonyms] == ["group.consumer.session.timeout.ms"] * 2
    assert entries["consumer.heartbeat.interval.ms"].source is ConfigSource.DEFAULT_CONFIG


def test_only_names_that_are_asked_for():
    assert [entry.name for entry in describe_group(BrokerConfig(), ["consumer.session.timeout.ms", "bogus"])] == [
        "consumer.session.timeout.ms"
    ]
    assert [entry.name for entry in describe_client_metrics(["match"])] == ["match"]
    assert describe_loggers(["bogus"]) == []


def test_there_is_one_logger():
    assert [(entry.name, entry.value) for entry in describe_loggers()] == [("root", "INFO")]
