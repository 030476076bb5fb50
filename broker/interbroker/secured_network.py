"""The network by which brokers reach each other, with the security that the listener between them requires."""

from __future__ import annotations

import asyncio

import structlog

from barnabas.broker.config import BrokerConfig
from barnabas.broker.network import Connector, Network
from barnabas.broker.security.errors import SecurityError
from barnabas.broker.server.server import Server

log = structlog.get_logger()


def secured(network: Network, server: Server, config: BrokerConfig, loop: asyncio.AbstractEventLoop) -> Connector:
    """`server` has bound its listeners. The modules for TLS and SASL are imported where they are needed."""
    between_brokers = config.inter_broker_listener
    tls = next(each.tls for each in server.listeners if each.name == between_brokers.name)
    connector: Connector = network
    if tls is not None:
        from barnabas.broker.interbroker.tls_network import TlsNetwork

        connector = TlsNetwork(network, tls, loop)
    if between_brokers.uses_sasl:
        from barnabas.broker.interbroker.sasl_network import OwnLogin, SaslNetwork

        try:
            OwnLogin(config)
        except SecurityError as error:  # a single broker needs none
            log.warning("this broker cannot connect to others", reason=str(error))
        connector = SaslNetwork(connector, lambda: OwnLogin(config), loop)
    return connector
