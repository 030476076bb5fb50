"""The one table of what this broker serves. ApiVersions is derived from it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from broker.handlers import (
    api_versions,
    describe_cluster,
    fetch,
    init_producer_id,
    list_offsets,
    metadata,
    offset_for_leader_epoch,
    produce,
)
from broker.server.dispatch import Api
from protocol.api import ApiKey
from protocol.schema import Versions

if TYPE_CHECKING:
    from broker.broker import Broker


def served_by(broker: Broker) -> list[Api]:
    return [
        Api(ApiKey.PRODUCE, partial(produce.handle, broker), advertised_from=0),
        Api(ApiKey.FETCH, partial(fetch.handle, broker)),
        Api(ApiKey.LIST_OFFSETS, partial(list_offsets.handle, broker)),
        Api(ApiKey.METADATA, partial(metadata.handle, broker)),
        Api(ApiKey.API_VERSIONS, partial(api_versions.handle, broker)),
        Api(ApiKey.INIT_PRODUCER_ID, partial(init_producer_id.handle, broker), versions=Versions(0, 5)),
        Api(ApiKey.OFFSET_FOR_LEADER_EPOCH, partial(offset_for_leader_epoch.handle, broker)),
        Api(ApiKey.DESCRIBE_CLUSTER, partial(describe_cluster.handle, broker)),
    ]
