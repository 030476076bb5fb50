"""Security in one line: certificates, users and settings for a broker on one machine, or in a test.

The certificates are in a folder: an authority, a server and a client. They are created once and reused, so that clients
that trust the authority keep doing so.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from barnabas.broker.security.acls import Acl, Entry, Pattern
from barnabas.broker.security.errors import SecurityError
from barnabas.protocol.acls import CLUSTER_NAME, WILDCARD, AclOperation, PatternType, PermissionType, ResourceType

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_PLAIN_LOGIN: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
# The brokers of one process use it with each other. Its password exists in memory only.
BROKER_USER: Final = "barnabas-broker"


class Certificates(NamedTuple):
    """Files in one folder. Those with keys are readable for their owner only."""

    ca: str
    ca_key: str
    server: str  # key and certificate
    client: str  # key and certificate

    @classmethod
    def at(cls, folder: str) -> Certificates:
        names = ("ca.pem", "ca-key.pem", "server.pem", "client.pem")
        return cls(*(os.path.join(os.path.abspath(folder), name) for name in names))


def make_certificates(folder: str, hosts: Sequence[str] = (), client: str = "client") -> Certificates:
    """Create what is missing. `hosts` are names and addresses of the server besides those of this machine."""
    try:
        from barnabas.broker.security.certificates import LOCAL_HOSTS, Authority, Issued
    except ImportError:
        raise SecurityError(
            "certificates need a package that is not installed: pip install '.[security]' in a clone of Barnabas"
        ) from None

    files = Certificates.at(folder)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    try:
        if os.path.exists(files.ca) and os.path.exists(files.ca_key):
            authority = Authority(Issued(_read(files.ca_key), _read(files.ca)))
        else:
            authority = Authority.create()
            _write(files.ca_key, authority.issued.key)
            _write(files.ca, authority.certificate, mode=0o644)
        if hosts or not os.path.exists(files.server):
            issued = authority.issue("broker", tuple(dict.fromkeys((*LOCAL_HOSTS, *hosts))))
            _write(files.server, issued.key + issued.certificate)
        if not os.path.exists(files.client):
            issued = authority.issue(client)
            _write(files.client, issued.key + issued.certificate)
    except ValueError:
        raise SecurityError(f"{folder} has files that are not certificates; use another folder") from None
    return files


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _write(path: str, data: bytes, mode: int = 0o600) -> None:
    """Replace a file as a whole: nobody sees half of it, and only its owner may read it if it is private."""
    temporary = f"{path}.new"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with os.fdopen(descriptor, "wb") as file:
        os.fchmod(descriptor, mode)
        file.write(data)
    os.replace(temporary, path)


def settings_for(
    protocol: str, certificates: Certificates | None, users: Mapping[str, str], broker_password: str
) -> dict[str, str]:
    """The settings of a broker whose one listener has this security protocol."""
    settings: dict[str, str] = {}
    if certificates is not None:
        settings |= {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": certificates.server,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": certificates.ca,
        }
        if protocol == "SSL":
            settings["ssl.client.auth"] = "requested"
    if protocol.startswith("SASL"):
        own = {"username": BROKER_USER, "password": broker_password, f"user_{BROKER_USER}": broker_password}
        options = own | {f"user_{name}": password for name, password in users.items()}
        written = " ".join(f"{_quoted(name)}={_quoted(value)}" for name, value in options.items())
        settings |= {
            "sasl.enabled.mechanisms": ",".join(MECHANISMS),
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            f"listener.name.{protocol.lower()}.plain.sasl.jaas.config": f"{_PLAIN_LOGIN} required {written};",
        }
    return settings


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


# --- rules ---

_RESOURCES: Final = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactional_id": ResourceType.TRANSACTIONAL_ID,
    "cluster": ResourceType.CLUSTER,
}


def acls_of(rule: object) -> list[Acl]:
    """The rules that one entry of a list stands for: {"user": "alice", "allow": ["read", "write"], "topic": "orders"}.

    It may be "deny" instead of "allow", another resource, or true for the "cluster"; "prefixed" is true for names that
    begin with the name, and "host" an address. SecurityError if it is something else.
    """
    if not isinstance(rule, dict):
        raise SecurityError(f"{rule!r} is not a rule")
    fields = dict(rule)
    user, host, prefixed = fields.pop("user", None), fields.pop("host", WILDCARD), fields.pop("prefixed", False)
    permissions = [each for each in (PermissionType.ALLOW, PermissionType.DENY) if each.name.lower() in fields]
    resources = [name for name in _RESOURCES if name in fields]
    if not isinstance(user, str) or not isinstance(host, str) or len(permissions) != 1 or len(resources) != 1:
        raise SecurityError(f"{rule!r} must have user, allow or deny, and one of {', '.join(_RESOURCES)}")
    operations, name = fields.pop(permissions[0].name.lower()), fields.pop(resources[0])
    if fields:
        raise SecurityError(f"{rule!r} has {', '.join(fields)}, which no rule has")
    resource_type = _RESOURCES[resources[0]]
    if resource_type == ResourceType.CLUSTER:
        name = CLUSTER_NAME if name is True else name
    if not isinstance(name, str) or not name:
        raise SecurityError(f"{rule!r} names no {resources[0]}")
    pattern = Pattern(resource_type, name, PatternType.PREFIXED if prefixed else PatternType.LITERAL)
    principal = user if ":" in user else f"User:{user}"
    try:
        known = [AclOperation[each.upper()] for each in ([operations] if isinstance(operations, str) else operations)]
    except (KeyError, AttributeError, TypeError):
        raise SecurityError(f"{rule!r} has an operation that does not exist") from None
    return [Acl(pattern, Entry(principal, host, operation, permissions[0])) for operation in known]
