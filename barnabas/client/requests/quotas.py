"""Requests about quotas of users, client ids and addresses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from barnabas.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    OpData,
    RequestEntityData,
    RequestEntryData,
)
from barnabas.protocol.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest

EXACT: Final = 0
DEFAULT: Final = 1
ANY: Final = 2

Entity = Mapping[str, str | None]
"""Names by `user`, `client-id` or `ip`; None stands for the default."""


def alter_quotas(
    *entries: tuple[Entity, Mapping[str, float | None]], validate_only: bool = False
) -> AlterClientQuotasRequest:
    """Set the values of each entity; None removes one."""
    return AlterClientQuotasRequest(
        entries=[
            RequestEntryData(
                entity=[RequestEntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()],
                ops=[
                    OpData(key=key, value=0.0 if value is None else value, remove=value is None)
                    for key, value in values.items()
                ],
            )
            for entity, values in entries
        ],
        validate_only=validate_only,
    )


def describe_quotas(
    components: Iterable[tuple[str, int, str | None]] = (), strict: bool = False
) -> DescribeClientQuotasRequest:
    """Those that match every component: a kind of entity, how it is matched, and by which name."""
    return DescribeClientQuotasRequest(
        components=[ComponentData(entity_type=kind, match_type=match, match=name) for kind, match, name in components],
        strict=strict,
    )
