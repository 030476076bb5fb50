"""The broker's identity, its listeners, and the limits of a connection."""

from barnabas.broker.config.setting import CLUSTER_WIDE, UnlikeKafka, integer, long, pairs, string, strings
from barnabas.broker.config.values import INT_MAX, ConfigType, Text, WholeNumber

SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


class NetworkSettings:
    """Unlike in Kafka, listeners and their protocols cannot be altered at run-time."""

    node_id = integer(
        0,
        "The number of this broker, unique in its cluster.",
        at_least=0,
        unlike_kafka=UnlikeKafka(None, "the only broker on a laptop needs no number of its own"),
    )
    broker_id = integer(-1, "The older name of node.id; -1 stands for node.id.")
    broker_rack = string(None, "The rack of this broker; replicas are spread over racks.")
    process_roles = strings(
        ("broker",),
        "The roles of this process. It must include broker; the controller is part of it.",
        one_of=("broker", "controller"),
        may_be_empty=False,
        unlike_kafka=UnlikeKafka(None, "every process is a broker"),
    )

    listeners = strings(
        ("PLAINTEXT://127.0.0.1:9092",),
        "The addresses that the broker listens on, each as NAME://host:port; no host means every interface.",
        may_be_empty=False,
        unlike_kafka=UnlikeKafka(
            ("PLAINTEXT://:9092",), "nobody else should reach the broker on a laptop unless its owner wants that"
        ),
    )
    advertised_listeners = strings(
        None,
        "The addresses that clients are told to connect to; by default, the one that each client connected to.",
        may_be_empty=False,
    )
    listener_security_protocol_map = pairs(
        {
            "SASL_SSL": "SASL_SSL",
            "PLAINTEXT": "PLAINTEXT",
            "SSL": "SSL",
            "SASL_PLAINTEXT": "SASL_PLAINTEXT",
        },
        "The security protocol of each listener name, as NAME:PROTOCOL pairs.",
        value_kind=Text(ConfigType.STRING, SECURITY_PROTOCOLS, ignore_case=True),
    )
    inter_broker_listener_name = string(None, "The listener that brokers use to reach each other.")
    security_inter_broker_protocol = string(
        "PLAINTEXT",
        "The security protocol between brokers, if inter.broker.listener.name does not name a listener.",
        one_of=SECURITY_PROTOCOLS,
    )
    controller_listener_names = strings(
        (),
        "The listeners that belong to Kafka's controllers; they are not opened.",
        may_be_empty=False,
        unlike_kafka=UnlikeKafka(None, "the controller has no listener"),
    )

    socket_send_buffer_bytes = integer(
        204800,
        "SO_SNDBUF of a connection; -1 leaves it to the operating system.",
        unlike_kafka=UnlikeKafka(
            102400, "a large answer takes fewer turns of the loop, and it still fits into the cache"
        ),
    )
    socket_receive_buffer_bytes = integer(
        1048576,
        "SO_RCVBUF of a connection; -1 leaves it to the operating system.",
        unlike_kafka=UnlikeKafka(102400, "a producer on the same machine fills it faster than the loop empties it"),
    )
    socket_listen_backlog_size = integer(
        4096,
        "How many connections may wait to be accepted; the operating system may have a smaller limit.",
        at_least=1,
        unlike_kafka=UnlikeKafka(50, "in a burst of connections, those beyond it are retried only after a second"),
    )
    socket_request_max_bytes = integer(
        104857600, "The largest request that is read; a larger one closes its connection.", at_least=1
    )
    connections_max_idle_ms = long(600000, "How long a connection may be idle before it is closed.")
    max_connections = integer(
        INT_MAX, "How many connections may be open at once on all listeners.", at_least=0, update_mode=CLUSTER_WIDE
    )
    max_connections_per_ip = integer(
        INT_MAX, "How many connections one IP address may have open at once.", at_least=0, update_mode=CLUSTER_WIDE
    )
    max_connections_per_ip_overrides = pairs(
        {},
        "Exceptions from max.connections.per.ip, as host:count pairs.",
        value_kind=WholeNumber(ConfigType.INT, 0, None),
        update_mode=CLUSTER_WIDE,
    )
    max_connection_creation_rate = integer(
        INT_MAX,
        "How many new connections are accepted per second.",
        at_least=0,
        update_mode=CLUSTER_WIDE,
    )
    connection_failed_authentication_delay_ms = integer(
        100,
        "How long the broker waits before it closes the connection of a client that failed to authenticate.",
        at_least=0,
    )

    request_timeout_ms = integer(30000, "How long a broker waits for another broker's answer.")
    fetch_max_bytes = integer(
        57671680, "How much data one Fetch response may hold, whatever the client asks for.", at_least=1024
    )
    max_incremental_fetch_session_cache_slots = integer(
        1000, "How many incremental fetch sessions the broker remembers.", at_least=0
    )
    max_request_partition_size_limit = integer(
        2000, "How many partitions one DescribeTopicPartitions response may hold.", at_least=1
    )
