"""Which address a client gets for each broker.

A broker that advertises no address gives the client the address at which the client reached it, because that one works.
`advertised.listeners` must be set only where addresses are translated in between (a container's published port).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.server.connection import Connection


class BrokerEndpoint(NamedTuple):
    broker_id: int
    host: str
    port: int
    rack: str | None


def endpoints_for(broker: Broker, connection: Connection) -> list[BrokerEndpoint]:
    """The live brokers, each with its address on the listener that this client uses."""
    found = []
    for image in broker.cluster.brokers.values():
        if image.broker_id == broker.config.node_id:
            found.append(BrokerEndpoint(image.broker_id, *_own_address(connection), image.rack))
            continue
        for endpoint in image.endpoints:
            if endpoint.name == connection.listener.name:
                found.append(BrokerEndpoint(image.broker_id, endpoint.host, endpoint.port, image.rack))
    return found


def _own_address(connection: Connection) -> tuple[str, int]:
    config = connection.listener.config
    host, port = connection.local_address
    return config.advertised_host or host, config.advertised_port or port
