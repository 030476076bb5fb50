"""Listeners: where the broker listens, which protocol it speaks there, and the address that it advertises.

`listeners`, `advertised.listeners`, `listener.security.protocol.map` and `inter.broker.listener.name` belong together,
and Kafka's rules about them are checked here. The listeners in `controller.listener.names` belong to a KRaft
controller, which Barnabas does not have: they are not opened.
"""

from collections.abc import Mapping
from typing import NamedTuple

from barnabas.broker.config.errors import ConfigError
from barnabas.broker.config.values import Strings

_HOST_CHARACTERS = frozenset("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-%._:")


class Listener(NamedTuple):
    name: str
    security_protocol: str  # PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL
    host: str  # empty for every interface; an IPv6 address has no brackets
    port: int  # 0 for any free port
    advertised_host: str | None = None  # None for the address that a client connected to
    advertised_port: int | None = None

    @property
    def uses_tls(self) -> bool:
        return self.security_protocol in ("SSL", "SASL_SSL")

    @property
    def uses_sasl(self) -> bool:
        return self.security_protocol in ("SASL_PLAINTEXT", "SASL_SSL")


class Listeners(NamedTuple):
    for_clients: tuple[Listener, ...]
    inter_broker: Listener
    not_opened: Strings  # the names of the controller's


class Address(NamedTuple):
    """One item of `listeners` or `advertised.listeners`."""

    name: str
    host: str
    port: int


def resolve_listeners(
    listeners: Strings,
    advertised_listeners: Strings | None,
    security_protocol_map: Mapping[str, str],
    inter_broker_listener_name: str | None,
    security_inter_broker_protocol: str | None,
    controller_listener_names: Strings,
) -> Listeners:
    """The broker's listeners, or a ConfigError with all problems."""
    problems: list[str] = []
    controllers = {name.upper() for name in controller_listener_names}
    protocols = {name.upper(): protocol.upper() for name, protocol in security_protocol_map.items()}
    if len(protocols) < len(security_protocol_map):
        problems.append("listener.security.protocol.map has a listener twice, in upper and in lower case")

    addresses = _parse_addresses("listeners", listeners, problems)
    _check_ports(addresses, problems)
    not_opened = tuple(address.name for address in addresses if address.name in controllers)
    addresses = [address for address in addresses if address.name not in controllers]
    if not addresses and not problems:
        problems.append("listeners has only those of controller.listener.names, so clients could not connect")
    names = [address.name for address in addresses]
    for name in names:
        if name not in protocols:
            problems.append(f"listener.security.protocol.map has no security protocol for the listener {name}")

    advertised = {
        address.name: address
        for address in _parse_addresses("advertised.listeners", advertised_listeners or (), problems)
    }
    for name, address in advertised.items():
        if address.host == "0.0.0.0":
            problems.append(f"advertised.listeners has 0.0.0.0 for {name}, but clients cannot connect to that address")
        if name not in names and name not in controllers:
            problems.append(f"advertised.listeners has {name}, which is not among the listeners {', '.join(names)}")

    if inter_broker_listener_name is not None and security_inter_broker_protocol is not None:
        problems.append("only one of inter.broker.listener.name and security.inter.broker.protocol may be set")
    # If neither is set and there is only one listener, use that one. Kafka insists that it is called PLAINTEXT.
    otherwise = names[0] if len(names) == 1 else "PLAINTEXT"
    between_brokers = (inter_broker_listener_name or security_inter_broker_protocol or otherwise).upper()
    if between_brokers not in names and not problems:
        problems.append(
            f"brokers reach each other through the listener {between_brokers}, which is not among the listeners "
            f"{', '.join(names)}; set inter.broker.listener.name to one of them"
        )
    elif advertised and between_brokers not in advertised and not problems:
        problems.append(f"advertised.listeners must have {between_brokers}, through which brokers reach each other")
    if problems:
        raise ConfigError(problems)

    resolved = {}
    for name, host, port in addresses:
        shown = advertised.get(name, Address(name, "", 0))
        resolved[name] = Listener(name, protocols[name], host, port, shown.host or None, shown.port or None)
    return Listeners(tuple(resolved.values()), resolved[between_brokers], not_opened)


def shifted(items: Strings, number: int) -> str:
    """The same listeners for the broker that comes so many after: each port is as much higher, but 0 stays 0."""
    addresses = [address for item in items if (address := _parse_address(item)) is not None]
    return ",".join(
        f"{name}://{f'[{host}]' if ':' in host else host}:{port + number if port else 0}"
        for name, host, port in addresses
    )


def _parse_addresses(setting: str, items: Strings, problems: list[str]) -> list[Address]:
    addresses: list[Address] = []
    for item in items:
        address = _parse_address(item)
        if address is None:
            problems.append(
                f"{setting} has {item!r}, but each item must be NAME://host:port, with a port from 0 to 65535"
            )
            continue
        if any(address.name == other.name for other in addresses):
            problems.append(f"{setting} has {address.name} twice, but each listener needs a name of its own")
        addresses.append(address)
    return addresses


def _parse_address(text: str) -> Address | None:
    name, _, host_and_port = text.partition("://")
    host, colon, port = host_and_port.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    if not name or not colon or not _HOST_CHARACTERS.issuperset(host):
        return None
    if not (port.isascii() and port.isdigit() and len(port) <= 5 and int(port) <= 65535):
        return None
    return Address(name.upper(), host, int(port))


def _check_ports(addresses: list[Address], problems: list[str]) -> None:
    """A port may belong to one listener, or to two if one has an IPv4 address and the other an IPv6 address."""
    by_port: dict[int, list[Address]] = {}
    for address in addresses:
        if address.port != 0:
            by_port.setdefault(address.port, []).append(address)
    for port, sharing in by_port.items():
        if len(sharing) == 1:
            continue
        families = sorted(_family(address.host) for address in sharing)
        if families != ["IPv4", "IPv6"]:
            names = " and ".join(address.name for address in sharing)
            problems.append(
                f"listeners has port {port} for {names}; two listeners may share a port "
                "only if one has an IPv4 address and the other an IPv6 address"
            )


def _family(host: str) -> str:
    if ":" in host:
        return "IPv6"
    parts = host.split(".")
    return "IPv4" if len(parts) == 4 and all(part.isdigit() for part in parts) else "name"
