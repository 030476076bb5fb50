"""franz-go: one process for all scenarios, which tests/go/main.go is. It takes Kafka's names of settings."""

from __future__ import annotations

from typing import Any, ClassVar

from tests.integration.clients.driver import DrivenGroupConsumer, DrivenProducer, Driver, Opened
from tests.integration.clients.interface import (
    Acks,
    Assignor,
    Compression,
    GroupClient,
    GroupConsumer,
    Producer,
    group_settings,
)
from tests.support.franz_go import program


class FranzGoDriver(Driver):
    def __init__(self) -> None:
        super().__init__([str(program())])


class FranzGoClient(GroupClient):
    name = "franz-go"
    assignors: ClassVar[dict[Assignor, Any]] = {
        name: name for name in ("range", "roundrobin", "sticky", "cooperative-sticky")
    }

    def __init__(self, bootstrap: str, driver: FranzGoDriver) -> None:
        super().__init__(bootstrap)
        self._driver = driver

    def producer(
        self,
        compression: Compression = "none",
        acks: Acks = "all",
        enable_idempotence: bool | None = None,
        metadata_max_age_ms: int = 300_000,
    ) -> Producer:
        return DrivenProducer(Opened(self._driver, "producer", settings={"bootstrap.servers": self.bootstrap}))

    def group_consumer(
        self, group: str, assignor: Assignor = "range", settings: dict[str, str | int] | None = None
    ) -> GroupConsumer:
        merged = {
            "bootstrap.servers": self.bootstrap,
            "group.id": group,
            **group_settings(self.assignors[assignor], settings),
        }
        # kgo asks for its assignor also in the consumer protocol, and chooses the broker's from it.
        merged["partition.assignment.strategy"] = assignor
        as_text = {name: str(value) for name, value in merged.items()}
        return DrivenGroupConsumer(Opened(self._driver, "group_consumer", settings=as_text))

    def share_consumer(self, group: str, topic: str) -> Opened:
        """A member of a share group, with the calls of the program: poll (and what becomes of the records), close."""
        settings = {"bootstrap.servers": self.bootstrap, "group.id": group, "fetch.max.wait.ms": "50"}
        member = Opened(self._driver, "share_consumer", settings=settings)
        member.call("subscribe", topics=[topic])
        return member

    def close(self) -> None:
        pass
