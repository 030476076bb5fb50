"""AlterClientQuotas (key 49): set or remove quotas of users, client ids and addresses.

Any broker does that. All versions have the same fields; version 1 is flexible.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from barnabas.broker.quotas.alteration import Changes, InvalidAlteration, altered, check, entity_of
from barnabas.broker.quotas.entities import KINDS
from barnabas.broker.registry.errors import RegistryError
from barnabas.broker.server.freeing import LongList
from barnabas.broker.server.pieces import spread
from barnabas.broker.server.request import Request
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    RequestEntryData,
    ResponseEntityData,
    ResponseEntryData,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

# No entity has as many quotas. More are refused before anybody looks at each of them.
_MOST_OPS: Final = 100


async def handle(broker: Broker, request: Request, message: AlterClientQuotasRequest) -> AlterClientQuotasResponse:
    """Each entity by itself: one that is refused does not affect the others.

    As in Kafka, if an entity has two names of the same kind, the last one counts, and an entity that is named twice is
    answered once.
    """
    by_entity: dict[frozenset[tuple[str, str | None]], list[RequestEntryData]] = {}
    answers: list[ResponseEntryData] = LongList()
    async for entry in spread(message.entries):
        names: dict[str, str | None] = {}
        async for each in spread(entry.entity):
            names[each.entity_type] = each.entity_name
        if len(names) > len(KINDS):
            answers.append(await _too_many(names))
        else:
            by_entity.setdefault(frozenset(names.items()), []).append(entry)
    async for parts, entries in spread(by_entity.items()):
        answer = ResponseEntryData(
            entity=[ResponseEntityData(entity_type=kind, entity_name=name) for kind, name in parts]
        )
        try:
            await _alter(broker, dict(parts), entries, message.validate_only)
        except InvalidAlteration as error:
            answer.error_code, answer.error_message = ErrorCode.INVALID_REQUEST, str(error)
        except RegistryError as error:
            answer.error_code, answer.error_message = ErrorCode.UNKNOWN_SERVER_ERROR, str(error)
        answers.append(answer)
    return AlterClientQuotasResponse(entries=answers)


async def _too_many(names: Mapping[str, str | None]) -> ResponseEntryData:
    """The answer for an entity that has parts of more kinds than there are."""
    parts: list[ResponseEntityData] = LongList()
    async for kind, name in spread(names.items()):
        parts.append(ResponseEntityData(entity_type=kind, entity_name=name))
    message = f"An entity has at most {len(KINDS)} parts"
    return ResponseEntryData(entity=parts, error_code=ErrorCode.INVALID_REQUEST, error_message=message)


async def _alter(
    broker: Broker, parts: Mapping[str, str | None], entries: Sequence[RequestEntryData], validate_only: bool
) -> None:
    if len(entries) > 1:
        raise InvalidAlteration("An entity may be named only once")
    entity = entity_of(parts)
    ops = entries[0].ops
    if len(ops) > _MOST_OPS:
        raise InvalidAlteration(f"More than {_MOST_OPS} quotas of one entity")
    changes: Changes = {op.key: None if op.remove else op.value for op in ops}
    if len(changes) < len(ops):
        raise InvalidAlteration("A quota may be named only once")
    check(entity, changes)
    await broker.config_follower.alter_quotas(entity, partial(altered, changes=changes), validate_only=validate_only)
