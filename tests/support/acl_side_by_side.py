"""Apache Kafka and Barnabas side by side, each with an authorizer and the same users with the same rights.

A right is written as `write topic t`, `describe cluster`, `read group g*` (a prefix) or `deny all topic *`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from barnabas.client.requests.acls import Rule, create_acls, describe_acls, rule
from barnabas.client.security import Security, authenticate
from barnabas.client.wire import Wire
from barnabas.protocol.acls import CLUSTER_NAME, AclOperation, PatternType, PermissionType, ResourceType
from barnabas.protocol.api import ApiKey
from barnabas.protocol.frames import decode_answer, request_frame
from barnabas.protocol.schema import Message
from tests.support.admin_side_by_side import AdminSide
from tests.support.apache_kafka import ApacheKafka
from tests.support.broker_process import BrokerProcess
from tests.support.side_by_side import CLOSED

ADMIN = "admin"
PASSWORD = "secret"
_STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


def parse(user: str, right: str) -> Rule:
    words = right.split()
    permission = PermissionType.ALLOW
    if words[0] == "deny":
        permission = PermissionType.DENY
        words = words[1:]
    operation, resource_type, name = (*words, CLUSTER_NAME)[:3]
    pattern = PatternType.LITERAL
    if name.endswith("*") and name != "*":
        name, pattern = name[:-1], PatternType.PREFIXED
    return rule(
        f"User:{user}",
        AclOperation[operation.upper()],
        ResourceType[resource_type.upper()],
        name,
        pattern_type=pattern,
        permission=permission,
    )


class GuardedSide(AdminSide):
    """One of the two brokers. `user` is who asks next."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._wires: dict[str, Wire] = {}
        self.logins: dict[str, Security] = {}  # of those who have another password
        self.user = ADMIN
        super().__init__(port)
        self._wire.close()

    def ask(self, key: ApiKey, message: Message, version: int) -> Any:
        wire = self._wires.get(self.user)
        if wire is None:
            wire = self._wires[self.user] = Wire("127.0.0.1", self._port)
            authenticate(wire, self.logins.get(self.user, Security(None, "PLAIN", self.user, PASSWORD)))
        wire.send(request_frame(key, message, version))
        body = wire.receive()
        if body is None:
            self._wires.pop(self.user).close()
            return CLOSED
        return decode_answer(body, key, version)

    def comparable(self, value: Any) -> Any:
        compared = super().comparable(value)
        if isinstance(compared, dict):
            compared |= {name: "its own" for name in compared.keys() & {"cluster_id", "port"} if compared[name] != -1}
        return compared

    def close(self) -> None:
        for wire in self._wires.values():
            wire.close()

    def grant(self, rules: Sequence[Rule]) -> None:
        for start in range(0, len(rules), 200):
            answer = self.ask(ApiKey.CREATE_ACLS, create_acls(*rules[start : start + 200]), 3)
            assert not [result for result in answer.results if result.error_code], answer
        # Apache Kafka answers before its rules are effective. There is no other sign that they are.
        while sum(len(r.acls) for r in self.ask(ApiKey.DESCRIBE_ACLS, describe_acls(Rule()), 3).resources) < len(
            set(rules)
        ):
            pass


@contextmanager
def guarded(
    data: Path, rights: Mapping[str, Sequence[str]], settings: Mapping[str, str]
) -> Iterator[tuple[GuardedSide, GuardedSide]]:
    """Both brokers, with users who have these rights."""
    users = " ".join(f'user_{name}="{PASSWORD}"' for name in (ADMIN, *rights))
    settings = {
        **settings,
        "authorizer.class.name": _STANDARD,
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
            f'{_PLAIN} required username="{ADMIN}" password="{PASSWORD}" {users};'
        ),
        "listener.name.sasl_plaintext.scram-sha-256.sasl.jaas.config": f"{_SCRAM} required;",
    }
    kafka = ApacheKafka({**settings, "super.users": f"User:ANONYMOUS;User:{ADMIN}"})
    port = kafka.add_listener("SASL_PLAINTEXT")
    own = {**settings, "super.users": f"User:{ADMIN}", "sasl.mechanism.inter.broker.protocol": "PLAIN"}
    with (
        kafka,
        BrokerProcess(data, "--listen", "SASL_PLAINTEXT://127.0.0.1:0", settings=own) as barnabas,
    ):
        sides = GuardedSide(port), GuardedSide(barnabas.port)
        rules = [parse(user, right) for user, own_rights in rights.items() for right in own_rights]
        for side in sides:
            side.grant(rules)
        yield sides
        for side in sides:
            side.close()
