import pytest

from barnabas.broker.config.names import base_name, is_ignored, unknown_name, update_mode
from barnabas.broker.config.setting import CLUSTER_WIDE, PER_BROKER, READ_ONLY


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("num.partitions", "num.partitions"),
        ("listener.name.external.ssl.client.auth", "ssl.client.auth"),
        ("listener.name.external.sasl.jaas.config", "sasl.jaas.config"),
        ("listener.name.external.scram-sha-256.sasl.jaas.config", "sasl.jaas.config"),
        ("listener.name.external", ""),
    ],
)
def test_a_name_may_be_meant_for_one_listener(name, base):
    assert base_name(name) == base


@pytest.mark.parametrize(
    "name",
    [
        "num.network.threads",
        "controller.quorum.voters",
        "remote.log.storage.system.enable",
        "metric.reporters",
        "zookeeper.sync.time.ms",
        "log.message.format.version",
        "rsm.config.bucket",
    ],
)
def test_names_without_effect_are_known(name):
    assert is_ignored(name)


def test_names_with_effect_are_not_ignored():
    assert not is_ignored("num.partitions")
    assert not is_ignored("no.such.name")


def test_what_can_be_altered_while_the_broker_runs():
    assert update_mode("message.max.bytes") is CLUSTER_WIDE
    assert update_mode("sasl.enabled.mechanisms") is PER_BROKER
    assert update_mode("listener.name.external.sasl.enabled.mechanisms") is PER_BROKER
    assert update_mode("num.io.threads") is CLUSTER_WIDE
    assert update_mode("principal.builder.class") is PER_BROKER
    assert update_mode("num.partitions") is READ_ONLY
    assert update_mode("controller.quorum.voters") is READ_ONLY


def test_an_unknown_name_gets_a_suggestion():
    assert unknown_name("num.partition") == ("num.partition is not a Kafka setting; did you mean num.partitions?")
    assert unknown_name("colour") == "colour is not a Kafka setting"


def test_a_topic_s_name_in_the_broker_s_file_gets_the_broker_s_name():
    assert unknown_name("retention.ms") == "retention.ms is a topic setting; the broker setting is log.retention.ms"
