"""Quotas of users, client ids and addresses, as an administrator sees them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from barnabas.client.client import Client
from barnabas.client.errors import check
from barnabas.client.requests.quotas import DEFAULT, EXACT, Entity, alter_quotas, describe_quotas
from barnabas.protocol.messages.alter_client_quotas import AlterClientQuotasResponse
from barnabas.protocol.messages.describe_client_quotas import DescribeClientQuotasResponse


class Quotas(NamedTuple):
    entity: Entity
    values: Mapping[str, float]


def quotas(client: Client, entity: Entity) -> list[Quotas]:
    """Those of all entities that have these parts, and perhaps others."""

    def attempt() -> list[Quotas]:
        components = [(kind, DEFAULT if name is None else EXACT, name) for kind, name in entity.items()]
        answer = client.controller().ask(describe_quotas(components), DescribeClientQuotasResponse)
        check(answer.error_code, "quotas", answer.error_message)
        return [
            Quotas(
                {part.entity_type: part.entity_name for part in entry.entity},
                {each.key: each.value for each in entry.values},
            )
            for entry in answer.entries or ()
        ]

    return client.settled(attempt)


def set_quotas(client: Client, entity: Entity, values: Mapping[str, float | None]) -> None:
    """Set these values; None removes one."""

    def attempt() -> None:
        answer = client.controller().ask(alter_quotas((entity, values)), AlterClientQuotasResponse)
        for each in answer.entries:
            check(each.error_code, "quotas", each.error_message)

    client.settled(attempt)
