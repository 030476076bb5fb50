import re

import pytest

from barnabas.broker.config import BrokerConfig, ConfigError, ConfigSource, ConfigSynonym, ConfigType

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
log.dirs=/var/lib/kafka/a
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


def test_without_settings_the_defaults_apply():
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
    assert config.warnings == (
        "these settings have no effect in Barnabas: controller.quorum.bootstrap.servers, num.network.threads, "
        "num.io.threads",
        "these listeners belong to a KRaft controller and are not opened: CONTROLLER",
    )


def test_a_server_properties_for_zookeeper_just_works(file):
    config = BrokerConfig.load(file(ZOOKEEPER_SERVER_PROPERTIES))
    assert config.node_id == 7
    assert config.num_partitions == 4
    assert config.data_dirs == ("/var/lib/kafka/a",)
    assert config.group_initial_rebalance_delay_ms == 3000
    (warning,) = config.warnings
    assert config.zookeeper_connect == "localhost:2181"
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
        "--config: 'nonsense' is not of the form name=value",
        "--config: '=x' is not of the form name=value",
        f"{path}:1: num.partition is not a Kafka setting; did you mean num.partitions?",
        f"{path}:3: socket.request.max.bytes is 'lots', but it must be a whole number from 1 to 2147483647",
        f"{path}:5: num.partitions is '0', but it must be a whole number from 1 to 2147483647",
        "--config: delete.topic.enable is 'perhaps', but it must be true or false",
    )


def test_an_assignment_without_a_name_is_a_problem_by_itself():
    assert problems(assignments=["num.partitions"]) == ("--config: 'num.partitions' is not of the form name=value",)


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


@pytest.mark.parametrize(
    "settings",
    [
        {"num.replica.fetchers": "1", "replica.lag.time.max.ms": "30000"},  # the defaults
        {"num.recovery.threads.per.data.dir": "1"},  # what the broker does, whatever the default is
        {"authorizer.class.name": "", "ssl.client.auth": "none"},
    ],
)
def test_what_the_broker_does_anyway_is_accepted(settings):
    assert BrokerConfig(settings).warnings == ()


@pytest.mark.parametrize(
    "setting",
    [
        "num.replica.fetchers=2",
        "num.recovery.threads.per.data.dir=2",
        "log.preallocate=true",
        "num.io.threads=8",
        "listener.name.plaintext.max.connections.per.ip=5",
        "listener.name.plaintext.ssl.protocol=TLS",
    ],
)
def test_a_setting_without_effect_is_warned_about(setting):
    config = BrokerConfig.load(assignments=[setting])
    name, _, _ = setting.partition("=")
    assert config.without_effect == (name,)
    assert config.warnings == (f"these settings have no effect in Barnabas: {name}",)


def test_a_listener_has_limits_of_its_own_or_those_of_the_broker():
    config = BrokerConfig(
        {
            "listeners": "INSIDE://:1,OUTSIDE://:2",
            "listener.security.protocol.map": "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
            "inter.broker.listener.name": "INSIDE",
            "max.connections": "10",
            "listener.name.outside.max.connections": "5",
            "listener.name.outside.max.connection.creation.rate": "7",
        }
    )
    assert config.connection_limits_of("INSIDE") == (10, 2**31 - 1)
    assert config.connection_limits_of("OUTSIDE") == (5, 7)
    assert config.without_effect == ()
    assert [config.is_protected(name) for name in ("INSIDE", "OUTSIDE")] == [True, False]


def test_the_only_listener_is_not_only_for_brokers():
    config = BrokerConfig()
    assert not config.is_protected(config.broker_listeners[0].name)


@pytest.mark.parametrize(
    ("setting", "advice"),
    [
        ("authorizer.class.name=a.B", "cannot run authorizers written in Java"),
        ("super.users=User:admin", "needs authorizer.class.name"),
        ("allow.everyone.if.no.acl.found=true", "needs authorizer.class.name"),
        ("create.topic.policy.class.name=a.B", "cannot run policies"),
        ("alter.config.policy.class.name=a.B", "cannot run policies"),
        ("config.providers=file", "write the values themselves"),
        ("principal.builder.class=a.B", "cannot run principal builders"),
        ("listener.name.plaintext.principal.builder.class=a.B", "cannot run principal builders"),
        ("ssl.engine.factory.class=a.B", "cannot run TLS engines"),
        ("sasl.oauthbearer.jwt.validator.class=a.B", "cannot run validators of tokens"),
        ("zookeeper.ssl.client.enable=true", "does not use TLS with ZooKeeper"),
        ("zookeeper.set.acl=true", "does not protect its nodes"),
        ("log.dirs=/a,/b", "log.dirs names 2 directories (/a, /b)"),
        ("log.dir=/a,/b", "log.dir names 2 directories (/a, /b)"),
        ("process.roles=controller", "add broker"),
    ],
)
def test_what_must_not_be_ignored_is_refused(setting, advice):
    (problem,) = problems(assignments=[setting])
    name, _, _ = setting.partition("=")
    assert name in problem
    assert advice in problem
    assert "s3cret" not in problem


def test_a_refusal_says_where_the_setting_is_and_what_to_do(file):
    path = file("num.partitions=3\nconfig.providers=file\n")
    (problem,) = problems(path)
    assert problem.startswith(f"{path}:2: config.providers is not supported: ")
    assert "write the values themselves" in problem


@pytest.mark.parametrize(
    "name", ["org.apache.kafka.metadata.authorizer.StandardAuthorizer", "kafka.security.authorizer.AclAuthorizer"]
)
def test_kafkas_authorizers_are_accepted(name):
    config = BrokerConfig(
        {"authorizer.class.name": name, "super.users": "User:a;User:b", "allow.everyone.if.no.acl.found": "true"}
    )
    assert (config.warnings, config.without_effect) == ((), ())


@pytest.mark.parametrize(
    "setting",
    [
        "principal.builder.class=org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder",
        "ssl.engine.factory.class=",
        "zookeeper.ssl.client.enable=false",
    ],
)
def test_what_must_not_be_ignored_may_ask_for_what_the_broker_does_anyway(setting):
    config = BrokerConfig.load(None, [setting])
    assert (config.warnings, config.without_effect) == ((), ())


def test_a_super_user_without_a_type_is_refused():
    name = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    with pytest.raises(ConfigError, match=r"super\.users has 'alice', but each principal must be like User:alice"):
        BrokerConfig({"authorizer.class.name": name, "super.users": "User:admin; alice"})


def test_the_description_of_a_setting_without_effect_says_so():
    works, ignored = BrokerConfig().describe(["num.partitions", "num.replica.fetchers"])
    assert "no effect" not in works.documentation
    assert ignored.documentation.endswith("It has no effect in Barnabas.")


def test_a_listener_s_setting_is_checked_too():
    with pytest.raises(ConfigError, match=re.escape("listener.name.external.ssl.client.auth is 'maybe'")):
        BrokerConfig({"listener.name.external.ssl.client.auth": "maybe"})
    with pytest.raises(ConfigError, match=r"did you mean ssl\.client\.auth"):
        BrokerConfig({"listener.name.external.ssl.client.aut": "none"})
    ignored = BrokerConfig({"listener.name.external.ssl.protocol": "TLS"})
    assert "listener.name.external.ssl.protocol" in ignored.warnings[0]


def test_alterations_take_effect_at_once_and_can_be_removed():
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


STORED = [
    ({"message.max.bytes": "x", "log.retention.ms": "5"}, {}, "message.max.bytes"),
    ({"log.retention.ms": "5"}, {"max.connections": "0"}, "max.connections"),
    ({"max.connection.creation.rate": "0", "log.retention.ms": "5"}, {}, "max.connection.creation.rate"),
    ({"log.retention.ms": "5"}, {"log.retention.ms": "0"}, "log.retention.ms"),
    ({"max.connections.per.ip": "0"}, {"log.retention.ms": "5"}, "max.connections.per.ip"),
    ({"bogus": "1"}, {"log.retention.ms": "5"}, "bogus"),
]


@pytest.mark.parametrize(("cluster_wide", "this_broker", "wrong"), STORED)
def test_only_invalid_stored_alterations_are_left_out(cluster_wide, this_broker, wrong):
    config = BrokerConfig()
    (problem,) = config.set_dynamic(cluster_wide, this_broker)
    assert problem.startswith(wrong)
    assert config.log_retention_ms == 5
    assert (config.max_connections, config.max_connections_per_ip) == (2**31 - 1, 2**31 - 1)
    assert wrong not in config.dynamic_this_broker


def test_a_file_may_close_the_broker_to_everybody():
    assert BrokerConfig({"max.connections": "0"}).set_dynamic({"message.max.bytes": "3000"}, {}) == ()


def test_wrong_alterations_change_nothing():
    config = BrokerConfig()
    config.set_dynamic({"message.max.bytes": "3000"}, {})
    for wrong in ({"message.max.bytes": "x"}, {"log.retention.ms": "0"}, {"max.connections": "0"}):
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


def test_names_for_the_same_setting_are_synonyms():
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


def test_a_listener_s_setting_is_described_with_the_one_it_overrides():
    config = BrokerConfig({"max.connections": "100", "listener.name.ssl.max.connections": "5"})
    (entry,) = config.describe(["listener.name.ssl.max.connections"])
    assert (entry.value, entry.type, entry.read_only) == ("5", ConfigType.INT, True)
    assert [(each.name, each.value) for each in entry.synonyms] == [
        ("listener.name.ssl.max.connections", "5"),
        ("max.connections", "100"),
        ("max.connections", "2147483647"),
    ]


def test_a_listener_has_settings_of_its_own_and_those_of_the_broker():
    config = BrokerConfig(
        {
            "ssl.client.auth": "required",
            "ssl.keystore.location": "/everywhere",
            "listener.name.internal.ssl.client.auth": "none",
        }
    )
    assert not config.warnings
    internal, other = config.for_listener("INTERNAL"), config.for_listener("SSL")
    assert (internal.ssl_client_auth, internal.ssl_keystore_location) == ("none", "/everywhere")
    assert (other.ssl_client_auth, other.ssl_keystore_location) == ("required", "/everywhere")


def test_a_mechanism_of_a_listener_has_settings_of_its_own():
    config = BrokerConfig(
        {
            "sasl.jaas.config": "for nobody",
            "connections.max.reauth.ms": "1000",
            "listener.name.external.plain.sasl.jaas.config": "for plain",
            "listener.name.external.plain.connections.max.reauth.ms": "2000",
        }
    )
    assert config.without_effect == ("sasl.jaas.config",)  # as in Kafka, which ignores it at brokers
    plain, scram = (config.for_listener("EXTERNAL", mechanism) for mechanism in ("PLAIN", "SCRAM-SHA-256"))
    assert (plain.sasl_jaas_config, plain.connections_max_reauth_ms) == ("for plain", 2000)
    assert (scram.sasl_jaas_config, scram.connections_max_reauth_ms) == (None, 1000)


def test_clients_with_passwords_need_no_certificates_unless_their_listener_says_so():
    settings = {"listeners": "SASL_SSL://:9093,SSL://:9094", "inter.broker.listener.name": "SSL"}
    config = BrokerConfig({**settings, "ssl.client.auth": "required"})
    assert config.for_listener("SSL").ssl_client_auth == "required"
    assert config.for_listener("SASL_SSL").ssl_client_auth == "none"
    config = BrokerConfig({**settings, "listener.name.sasl_ssl.ssl.client.auth": "required"})
    assert config.for_listener("SASL_SSL").ssl_client_auth == "required"
