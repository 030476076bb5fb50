"""The one table of what this broker serves. ApiVersions is derived from it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from broker.handlers import api_versions, describe_cluster, metadata
from broker.server.dispatch import Api
from protocol.api import ApiKey

if TYPE_CHECKING:
    from broker.broker import Broker


def served_by(broker: Broker) -> list[Api]:
    return [
        Api(ApiKey.METADATA, partial(metadata.handle, broker)),
        Api(ApiKey.API_VERSIONS, partial(api_versions.handle, broker)),
        Api(ApiKey.DESCRIBE_CLUSTER, partial(describe_cluster.handle, broker)),
    ]
