"""What an authorizer costs with a thousand access rules, on the path of small Produces: a lookup of the topic's name.

Measured as in benchmarks/observers, in turn with brokers that have none.
"""

from __future__ import annotations

import tempfile
from contextlib import ExitStack

from barnabas.client.requests.acls import Rule, create_acls, rule
from barnabas.client.wire import Wire
from barnabas.protocol.acls import AclOperation, PatternType, PermissionType, ResourceType
from barnabas.protocol.api import ApiKey
from benchmarks.observers import TOPIC, compare, create_topic
from tests.support.broker_process import BrokerProcess

RULES = 1000
USER = "User:ANONYMOUS"
AUTHORIZER = {"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}


def main(quick: bool = False) -> None:
    with ExitStack() as brokers:
        started = {}
        for name, settings in (("no authorizer", {}), ("no authorizer again", {}), (f"{RULES} rules", AUTHORIZER)):
            folder = brokers.enter_context(tempfile.TemporaryDirectory(prefix="access-"))
            if settings:
                _prepare(folder)
            started[name] = brokers.enter_context(BrokerProcess(folder, settings=settings))
            if not settings:
                create_topic(started[name])
        compare(started, quick)


def _prepare(folder: str) -> None:
    """Make the topic and the rules, as a super user, which the client is not afterwards."""
    with BrokerProcess(folder, settings=AUTHORIZER | {"super.users": USER}) as broker:
        create_topic(broker)
        with Wire("127.0.0.1", broker.port) as wire:
            wire.ask(ApiKey.CREATE_ACLS, create_acls(*_rules()), 3)


def _rules() -> list[Rule]:
    """A few are about this client and its topic; the others are about other users, topics and prefixes."""
    topic = ResourceType.TOPIC
    own = [
        rule(USER, AclOperation.WRITE, topic, TOPIC),
        rule("User:eve", AclOperation.ALL, topic, "*", permission=PermissionType.DENY),
        rule("User:*", AclOperation.DESCRIBE, topic, TOPIC[:3], pattern_type=PatternType.PREFIXED),
    ]
    others = [
        rule(
            f"User:user-{number % 50}",
            AclOperation.READ,
            topic,
            f"topic-{number}",
            pattern_type=PatternType.PREFIXED if number % 2 else PatternType.LITERAL,
        )
        for number in range(RULES - len(own))
    ]
    return own + others


if __name__ == "__main__":
    main(quick=True)
