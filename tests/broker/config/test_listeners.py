import pytest

from barnabas.broker.config import BrokerConfig, ConfigError, Listener


def listeners(**settings: str) -> tuple[Listener, ...]:
    return BrokerConfig({name.replace("_", "."): value for name, value in settings.items()}).broker_listeners


def problem(**settings: str) -> str:
    with pytest.raises(ConfigError) as caught:
        listeners(**settings)
    return str(caught.value)


def test_by_default_the_broker_listens_on_loopback_only():
    assert listeners() == (Listener("PLAINTEXT", "PLAINTEXT", "127.0.0.1", 9092),)


@pytest.mark.parametrize(
    ("address", "host", "port"),
    [
        ("PLAINTEXT://:9092", "", 9092),
        ("PLAINTEXT://0.0.0.0:9092", "0.0.0.0", 9092),
        ("PLAINTEXT://localhost:0", "localhost", 0),
        ("PLAINTEXT://[::1]:9092", "::1", 9092),
        ("PLAINTEXT://::1:9092", "::1", 9092),
        ("PLAINTEXT://[fe80::1%eth0]:9092", "fe80::1%eth0", 9092),
        ("plaintext://my_host.example-1.org:65535", "my_host.example-1.org", 65535),
    ],
)
def test_addresses(address, host, port):
    assert listeners(listeners=address) == (Listener("PLAINTEXT", "PLAINTEXT", host, port),)


@pytest.mark.parametrize(
    "address",
    [
        "PLAINTEXT",
        "PLAINTEXT://h",
        "PLAINTEXT:h:9092",
        "://h:9092",
        "PLAINTEXT://h:",
        "PLAINTEXT://h:65536",
        "PLAINTEXT://h:-1",
        "PLAINTEXT://h:9092/",
        "PLAINTEXT://a b:9092",
        "PLAINTEXT://h:٣",
    ],
)
def test_invalid_addresses(address):
    assert problem(listeners=address).startswith(f"listeners has {address!r}, but each item must be NAME://host:port")


def test_several_listeners_with_names_of_their_own():
    internal, external = listeners(
        listeners="INTERNAL://10.0.0.1:9092,EXTERNAL://0.0.0.0:9094",
        advertised_listeners="INTERNAL://10.0.0.1:9092,EXTERNAL://kafka.example.org:19094",
        listener_security_protocol_map="internal:plaintext,EXTERNAL:PLAINTEXT,UNUSED:SASL_SSL",
        inter_broker_listener_name="internal",
    )
    assert internal == Listener("INTERNAL", "PLAINTEXT", "10.0.0.1", 9092, "10.0.0.1", 9092)
    assert external == Listener("EXTERNAL", "PLAINTEXT", "0.0.0.0", 9094, "kafka.example.org", 19094)


def test_without_an_advertised_address_a_client_gets_the_one_it_connected_to():
    (listener,) = listeners(listeners="PLAINTEXT://0.0.0.0:9092")
    assert (listener.advertised_host, listener.advertised_port) == (None, None)
    (listener,) = listeners(listeners="PLAINTEXT://:9092", advertised_listeners="PLAINTEXT://:19092")
    assert (listener.advertised_host, listener.advertised_port) == (None, 19092)


def test_names_must_differ():
    assert "PLAINTEXT twice" in problem(listeners="PLAINTEXT://:9092,plaintext://:9093")
    assert "PLAINTEXT twice" in problem(advertised_listeners="PLAINTEXT://a:1,PLAINTEXT://b:2")


def test_ports_must_differ():
    assert "port 9092 for PLAINTEXT and SSL" in problem(listeners="PLAINTEXT://:9092,SSL://:9092")
    assert "port 9092" in problem(listeners="PLAINTEXT://127.0.0.1:9092,SSL://127.0.0.2:9092")
    assert "port 9092" in problem(listeners="PLAINTEXT://localhost:9092,SSL://[::1]:9092")
    three = "PLAINTEXT://127.0.0.1:9092,SSL://[::1]:9092,SASL_SSL://127.0.0.2:9092"
    assert "port 9092" in problem(listeners=three)


def test_ports_that_may_be_the_same():
    two = {"listener_security_protocol_map": "PLAINTEXT:PLAINTEXT,OTHER:PLAINTEXT"}
    assert len(listeners(listeners="PLAINTEXT://127.0.0.1:9092,OTHER://[::1]:9092", **two)) == 2
    assert len(listeners(listeners="PLAINTEXT://127.0.0.1:0,OTHER://127.0.0.1:0", **two)) == 2
    both = listeners(
        listeners="PLAINTEXT://:9092,OTHER://:9093", advertised_listeners="PLAINTEXT://lb:1,OTHER://lb:1", **two
    )
    assert [listener.advertised_port for listener in both] == [1, 1]


def test_every_listener_needs_a_security_protocol():
    assert "no security protocol for the listener EXTERNAL" in problem(listeners="EXTERNAL://:9092")
    assert "each value one of PLAINTEXT, SSL" in problem(listener_security_protocol_map="PLAINTEXT:TLS")
    assert "key:value pairs" in problem(listener_security_protocol_map="PLAINTEXT")
    twice = problem(listener_security_protocol_map="PLAINTEXT:PLAINTEXT,plaintext:SSL")
    assert "has a listener twice" in twice


@pytest.mark.parametrize(
    ("protocol", "tls", "sasl"),
    [("PLAINTEXT", False, False), ("SSL", True, False), ("SASL_PLAINTEXT", False, True), ("SASL_SSL", True, True)],
)
def test_a_listener_has_what_its_security_protocol_says(protocol, tls, sasl):
    (listener,) = listeners(
        listeners="CLIENTS://:9093",
        inter_broker_listener_name="CLIENTS",
        listener_security_protocol_map=f"CLIENTS:{protocol}",
    )
    assert (listener.uses_tls, listener.uses_sasl) == (tls, sasl)


def test_the_only_listener_is_the_one_between_brokers_too():
    assert BrokerConfig({"listeners": "SSL://:9093"}).inter_broker_listener.name == "SSL"


def test_a_controller_s_listener_may_have_any_security_protocol():
    (listener,) = listeners(
        listeners="PLAINTEXT://:9092,CONTROLLER://:9093",
        controller_listener_names="CONTROLLER",
        listener_security_protocol_map="PLAINTEXT:PLAINTEXT,CONTROLLER:SASL_SSL",
    )
    assert listener.name == "PLAINTEXT"


def test_advertised_addresses_must_be_reachable_and_known():
    assert "0.0.0.0" in problem(advertised_listeners="PLAINTEXT://0.0.0.0:9092")
    unknown = problem(listeners="PLAINTEXT://:9092", advertised_listeners="PLAINTEXT://h:1,SSL://h:2")
    assert unknown == "advertised.listeners has SSL, which is not among the listeners PLAINTEXT"


def test_the_listener_between_brokers():
    two = {
        "listeners": "PLAINTEXT://:9092,OTHER://:9093",
        "listener_security_protocol_map": "PLAINTEXT:PLAINTEXT,OTHER:PLAINTEXT",
    }
    names = {name.replace("_", "."): value for name, value in two.items()}
    assert BrokerConfig(names | {"inter.broker.listener.name": "other"}).inter_broker_listener.name == "OTHER"
    assert BrokerConfig({"security.inter.broker.protocol": "PLAINTEXT"}).inter_broker_listener.name == "PLAINTEXT"
    assert "set inter.broker.listener.name" in problem(security_inter_broker_protocol="SSL")
    assert "set inter.broker.listener.name" in problem(inter_broker_listener_name="SSL")
    assert "only one of" in problem(inter_broker_listener_name="PLAINTEXT", security_inter_broker_protocol="PLAINTEXT")
    only_other = problem(**two, advertised_listeners="OTHER://h:9093")
    assert only_other == "advertised.listeners must have PLAINTEXT, through which brokers reach each other"


def test_a_controller_s_listeners_are_left_out():
    config = BrokerConfig(
        {
            "process.roles": "broker,controller",
            "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
            "advertised.listeners": "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
            "controller.listener.names": "CONTROLLER",
        }
    )
    assert [listener.name for listener in config.broker_listeners] == ["PLAINTEXT"]
    assert config.warnings == ("these listeners belong to a KRaft controller and are not opened: CONTROLLER",)


def test_there_must_be_a_listener_besides_the_controller_s():
    alone = problem(listeners="CONTROLLER://:9093", controller_listener_names="CONTROLLER")
    assert "clients could not connect" in alone


def test_all_problems_are_reported_at_once():
    with pytest.raises(ConfigError) as caught:
        listeners(listeners="FOO://:1,BAR", advertised_listeners="FOO://0.0.0.0:1")
    assert len(caught.value.problems) == 3
