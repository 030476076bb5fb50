"""The registry of a cluster whose brokers are processes of their own.

They are `internal`: Apache Kafka 4 does not know them, so DescribeConfigs shows them only where they are set.
"""

from barnabas.broker.config.setting import integer, string


class ClusterSettings:
    zookeeper_connect = string(
        None,
        "The ZooKeeper servers, as host:port,… with an optional path at the end; without it, the brokers of one "
        "process share an embedded registry.",
        internal=True,
    )
    zookeeper_session_timeout_ms = integer(
        18000, "How long a broker that is out of reach counts as alive.", at_least=1, internal=True
    )
    zookeeper_connection_timeout_ms = integer(
        None,
        "How long a start waits for ZooKeeper; by default zookeeper.session.timeout.ms.",
        at_least=1,
        internal=True,
    )
    inter_broker_protocol_version = string(
        None,
        "The oldest Kafka that is a broker of this cluster. With 3.9 or older, everything sent and stored is what "
        "Apache Kafka 3.9 understands, and transactions work as before KIP-890.",
        internal=True,
    )
