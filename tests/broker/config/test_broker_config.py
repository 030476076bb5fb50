import re

import pytest

from broker.config import BrokerConfig, ConfigError, ConfigSource, ConfigSynonym, ConfigType

KRAFT_SERVER_PROPERTIES = """
# A broker and a controller in one process.
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=localhost:9093

listeners=PLAINTEXT://:9092,CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,\\
    SASL_SSL:SASL_SSL

num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600

log.dirs=/var/lib/kafka/kraft-combined-logs
num.partitions=1
num.recovery.threads.per.data.dir=1

offsets.topic.replication.factor=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1

#log.flush.interval.messages=10000
#log.flush.interval.ms=1000

log.retention.hours=168
#log.retention.bytes=1073741824
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
"""

ZOOKEEPER_SERVER_PROPERTIES = """
broker.id=7
listeners=PLAINTEXT://:9092
num.network.threads=3
num.io.threads=8
socket.request.max.bytes=104857600
log.dirs=/var/lib/kafka/a, /var/lib/kafka/b
num.partitions=4
offsets.topic.replication.factor=1
log.retention.hours=24
zookeeper.connect=localhost:2181
zookeeper.connection.timeout.ms=18000
inter.broker.protocol.version=2.8
log.message.format.version=2.8
group.initial.rebalance.delay.ms=3000
"""


@pytest.fixture
def file(tmp_path):
    def write(text: str) -> str:
        path = tmp_path / "server.properties"
        path.write_text(text)
        return str(path)

    return write


def problems(*args, **kwargs) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        BrokerConfig.load(*args, **kwargs)
    return caught.value.problems


def test_without_anything_the_defaults_hold():
    config = BrokerConfig.load()
    assert config.num_partitions == 1
    assert config.group_initial_rebalance_delay_ms == 0
    assert config.offsets_topic_replication_factor == 1
    assert config.socket_request_max_bytes == 104857600
    assert config.log_retention_ms is None
    assert config.node_id == 0
    assert config.warnings == ()


def test_a_kraft_server_properties_just_works(file):
    config = BrokerConfig.load(file(KRAFT_SERVER_PROPERTIES))
    assert config.node_id == 1
    assert config.data_dirs == ("/var/lib/kafka/kraft-combined-logs",)
    (listener,) = config.broker_listeners
    assert (listener.host, listener.port, listener.advertised_host) == ("", 9092, "localhost")
    ignored, controller = config.warnings
    assert ignored.startswith(
        "known to Kafka, but without effect here: controller.quorum.bootstrap.servers, num.network"
    )
    assert "CONTROLLER" in controller


def test_a_server_properties_of_zookeeper_s_time_just_works(file):
    config = BrokerConfig.load(file(ZOOKEEPER_SERVER_PROPERTIES))
    assert config.node_id == 7
    assert config.num_partitions == 4
    assert config.data_dirs == ("/var/lib/kafka/a", "/var/lib/kafka/b")
    assert config.group_initial_rebalance_delay_ms == 3000
    (warning,) = config.warnings
    assert "zookeeper.connect" in warning
    assert "log.message.format.version" in warning


def test_assignments_win_over_the_file_and_later_ones_over_earlier_ones(file):
    path = file("num.partitions=2\nnum.partitions=3\nauto.create.topics.enable=false\n")
    assert BrokerConfig.load(path).num_partitions == 3
    config = BrokerConfig.load(path, ["num.partitions=4", "num.partitions = 5 ", "log.dirs=a=b"])
    assert config.num_partitions == 5
    assert config.auto_create_topics_enable is False
    assert config.data_dirs == ("a=b",)


def test_all_problems_are_reported_at_once_with_their_place(file):
    path = file("num.partition=3\nnum.io.threads=8\nsocket.request.max.bytes=lots\n\nnum.partitions=0\n")
    assert problems(path, ["delete.topic.enable=perhaps", "nonsense", "=x"]) == (
        "--set: 'nonsense' is not of the form name=value",
        "--set: '=x' is not of the form name=value",
        f"{path}:1: num.partition is not a setting that Kafka knows; did you mean num.partitions?",
        f"{path}:3: socket.request.max.bytes is 'lots', but it must be a whole number from 1 to 2147483647",
        f"{path}:5: num.partitions is '0', but it must be a whole number from 1 to 2147483647",
        "--set: delete.topic.enable is 'perhaps', but it must be true or false",
    )


def test_an_assignment_without_a_name_is_a_problem_by_itself():
    assert problems(assignments=["num.partitions"]) == ("--set: 'num.partitions' is not of the form name=value",)


def test_a_file_that_cannot_be_read(tmp_path):
    (problem,) = problems(str(tmp_path))
    assert problem.startswith(f"{tmp_path}: ")


@pytest.mark.parametrize(
    ("settings", "node_id"),
    [
        ({}, 0),
        ({"node.id": "3"}, 3),
        ({"broker.id": "4"}, 4),
        ({"broker.id": "-1"}, 0),
        ({"broker.id": "-1", "node.id": "5"}, 5),
    ],
)
def test_node_id_and_its_older_name(settings, node_id):
    assert BrokerConfig(settings).node_id == node_id


def test_a_setting_for_one_listener():
    config = BrokerConfig(
        {
            "ssl.client.auth": "requested",
            "listener.name.external.ssl.client.auth": "required",
            "listener.name.external.plain.sasl.jaas.config": "plain users",
            "listener.name.external.sasl.jaas.config": "users",
        }
    )
    assert config.for_listener("EXTERNAL", BrokerConfig.ssl_client_auth) == "required"
    assert config.for_listener("INTERNAL", BrokerConfig.ssl_client_auth) == "requested"
    assert config.for_listener("EXTERNAL", BrokerConfig.sasl_jaas_config, "PLAIN") == "plain users"
    assert config.for_listener("EXTERNAL", BrokerConfig.sasl_jaas_config, "SCRAM-SHA-256") == "users"
    assert config.for_listener("INTERNAL", BrokerConfig.sasl_jaas_config, "PLAIN") is None


def test_a_listener_s_setting_is_checked_too():
    with pytest.raises(ConfigError, match=re.escape("listener.name.external.ssl.client.auth is 'maybe'")):
        BrokerConfig({"listener.name.external.ssl.client.auth": "maybe"})
    with pytest.raises(ConfigError, match=r"did you mean ssl\.client\.auth"):
        BrokerConfig({"listener.name.external.ssl.client.aut": "none"})
    ignored = BrokerConfig({"listener.name.external.ssl.protocol": "TLS"})
    assert "listener.name.external.ssl.protocol" in ignored.warnings[0]


def test_alterations_hold_at_once_and_go_again():
    config = BrokerConfig({"message.max.bytes": "1000", "log.cleaner.threads": "2"})
    config.set_dynamic({"message.max.bytes": "3000"}, {})
    assert config.message_max_bytes == 3000
    config.set_dynamic({"message.max.bytes": "3000"}, {"message.max.bytes": "2000"})
    assert config.message_max_bytes == 2000
    assert config.log_cleaner_threads == 2
    assert config.dynamic_cluster_wide == {"message.max.bytes": "3000"}
    assert config.dynamic_this_broker == {"message.max.bytes": "2000"}
    config.set_dynamic({}, {})
    assert config.message_max_bytes == 1000


def test_wrong_alterations_change_nothing():
    config = BrokerConfig()
    config.set_dynamic({"message.max.bytes": "3000"}, {})
    for wrong in ({"message.max.bytes": "x"}, {"log.retention.ms": "0"}):
        with pytest.raises(ConfigError):
            config.set_dynamic(wrong, {})
        with pytest.raises(ConfigError):
            config.try_dynamic({}, wrong)
    config.try_dynamic({}, {"message.max.bytes": "5"})
    assert config.message_max_bytes == 3000
    assert config.dynamic_cluster_wide == {"message.max.bytes": "3000"}


def synonym(name: str, value: str | None, source: ConfigSource) -> ConfigSynonym:
    return ConfigSynonym(name, value, source)


def test_a_description_says_where_a_value_comes_from():
    config = BrokerConfig({"message.max.bytes": "1000"})
    config.set_dynamic({"message.max.bytes": "3000"}, {"message.max.bytes": "2000"})
    (entry,) = config.describe(["message.max.bytes"])
    assert entry.value == "2000"
    assert entry.source is ConfigSource.DYNAMIC_BROKER_CONFIG
    assert entry.type is ConfigType.INT
    assert not entry.read_only
    assert not entry.sensitive
    assert entry.documentation == "The largest record batch that is accepted."
    assert entry.synonyms == (
        synonym("message.max.bytes", "2000", ConfigSource.DYNAMIC_BROKER_CONFIG),
        synonym("message.max.bytes", "3000", ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),
        synonym("message.max.bytes", "1000", ConfigSource.STATIC_BROKER_CONFIG),
        synonym("message.max.bytes", "1048588", ConfigSource.DEFAULT_CONFIG),
    )


def test_names_that_stand_in_for_one_another_are_synonyms():
    config = BrokerConfig({"log.retention.hours": "24"})
    config.set_dynamic({"log.retention.ms": "5000"}, {})
    milliseconds, hours = config.describe(["log.retention.ms", "log.retention.hours"])
    assert milliseconds.synonyms == (
        synonym("log.retention.ms", "5000", ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),
        synonym("log.retention.hours", "24", ConfigSource.STATIC_BROKER_CONFIG),
        synonym("log.retention.hours", "168", ConfigSource.DEFAULT_CONFIG),
    )
    assert hours.value == "24"
    assert [entry.source for entry in hours.synonyms] == [
        ConfigSource.STATIC_BROKER_CONFIG,
        ConfigSource.DEFAULT_CONFIG,
    ]


def test_a_setting_that_is_not_set_has_no_synonyms():
    (entry,) = BrokerConfig({"log.roll.hours": "1"}).describe(["log.roll.ms"])
    assert (entry.value, entry.source, entry.synonyms) == (None, ConfigSource.DEFAULT_CONFIG, ())


def test_secrets_are_not_described():
    config = BrokerConfig({"ssl.key.password": "s3cret", "delegation.token.secret.key": "s3cret"})
    config.set_dynamic({}, {"listener.name.ssl.ssl.keystore.password": "s3cret"})
    entries = config.describe()
    assert "s3cret" not in repr(entries)
    hidden = {entry.name for entry in entries if entry.sensitive and entry.source is not ConfigSource.DEFAULT_CONFIG}
    assert hidden == {
        "ssl.key.password",
        "delegation.token.secret.key",
        "listener.name.ssl.ssl.keystore.password",
    }


def test_everything_is_described_but_what_is_internal():
    config = BrokerConfig({"num.io.threads": "4", "log.initial.task.delay.ms": "1"})
    entries = {entry.name: entry for entry in config.describe()}
    assert entries["num.partitions"].read_only
    assert entries["num.partitions"].source is ConfigSource.DEFAULT_CONFIG
    assert entries["num.io.threads"].source is ConfigSource.STATIC_BROKER_CONFIG
    assert entries["num.io.threads"].type is ConfigType.UNKNOWN
    assert entries["log.initial.task.delay.ms"].value == "1"
    assert "producer.id.expiration.check.interval.ms" not in entries
    assert "background.threads" not in entries
    assert config.describe(["no.such.name"]) == []


def test_the_cluster_s_alterations_are_described_alone():
    config = BrokerConfig({"message.max.bytes": "1000"})
    config.set_dynamic({"message.max.bytes": "3000", "max.connections": "77"}, {"message.max.bytes": "2000"})
    entries = {entry.name: entry for entry in config.describe_cluster_wide()}
    assert entries.keys() == {"message.max.bytes", "max.connections"}
    entry = entries["message.max.bytes"]
    assert (entry.value, entry.source) == ("3000", ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG)
    assert entry.synonyms == (synonym("message.max.bytes", "3000", ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),)
    assert [entry.name for entry in config.describe_cluster_wide(["max.connections"])] == ["max.connections"]


def test_what_has_no_type_stays_hidden_for_the_cluster_too():
    config = BrokerConfig()
    config.set_dynamic({"num.io.threads": "4"}, {})
    (entry,) = config.describe_cluster_wide()
    assert (entry.name, entry.value, entry.sensitive) == ("num.io.threads", None, True)


def test_a_listener_s_setting_is_described_with_the_one_it_stands_before():
    config = BrokerConfig({"max.connections": "100", "listener.name.ssl.max.connections": "5"})
    (entry,) = config.describe(["listener.name.ssl.max.connections"])
    assert (entry.value, entry.type, entry.read_only) == ("5", ConfigType.INT, True)
    assert [(each.name, each.value) for each in entry.synonyms] == [
        ("listener.name.ssl.max.connections", "5"),
        ("max.connections", "100"),
        ("max.connections", "2147483647"),
    ]
