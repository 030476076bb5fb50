"""The broker or cluster under test, and what it advertises."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from barnabas.client.client import Client
from barnabas.client.connection import Address
from barnabas.client.errors import ClientError
from barnabas.client.security import PLAINTEXT, Security
from barnabas.conformance.catalogue import Check
from barnabas.conformance.strict_wire import Deadline, StrictWire
from barnabas.conformance.verdict import Failed
from barnabas.protocol.api import ApiKey, request_type
from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from barnabas.protocol.schema import Versions

_KNOWN = frozenset(ApiKey)


class CannotRun(Exception):
    """There is no broker to check."""


@dataclass(frozen=True)
class Target:
    bootstrap: Address
    nodes: Mapping[int, Address]
    controller: int
    versions: Mapping[ApiKey, Versions]
    unknown_keys: Sequence[int]
    """Advertised APIs that this tool has no messages for."""
    features: Mapping[str, int]
    """Finalized features and their levels."""
    security: Security = PLAINTEXT
    """How it is reached."""

    def common(self, key: ApiKey, wanted: Versions) -> Versions | None:
        """The wanted versions that the broker advertises and this tool knows."""
        theirs = self.versions.get(key)
        if theirs is None:
            return None
        ours = request_type(key).versions
        found = Versions(
            max(theirs.lowest, ours.lowest, wanted.lowest), min(theirs.highest, ours.highest, wanted.highest)
        )
        return found if found.lowest <= found.highest else None

    def lacks(self, check: Check) -> str | None:
        """What a check needs and this broker lacks, or None."""
        for key, wanted in check.needs.items():
            if key not in self.versions:
                return f"{key.api_name} is not advertised"
            if self.common(key, wanted) is None:
                theirs = self.versions[key]
                upper = "+" if wanted.highest == 32767 else f" to {wanted.highest}"
                return (
                    f"{key.api_name} is advertised from version {theirs.lowest} to {theirs.highest}, "
                    f"and this needs {wanted.lowest}{upper}"
                )
        for feature, level in check.features.items():
            if self.features.get(feature, 0) < level:
                return f"{feature} is at level {self.features.get(feature, 0)}, and this needs {level}"
        return None


def look_at(bootstrap: Sequence[Address], timeout: float, security: Security = PLAINTEXT) -> Target:
    """Find out what the broker advertises. A broker that answers this can be checked."""
    try:
        with Client(bootstrap, timeout=timeout, security=security) as client:
            metadata = client.metadata([])
            address = client.any_broker().address
    except ClientError as error:
        raise CannotRun(str(error)) from None
    deadline = Deadline(timeout)
    try:
        wire = StrictWire(address, deadline, security)
        try:
            first = wire.ask(ApiKey.API_VERSIONS, ApiVersionsRequest(), 0)
            ranges = {each.api_key: Versions(each.min_version, each.max_version) for each in first.api_keys}
            version = min(ranges[ApiKey.API_VERSIONS].highest, ApiVersionsRequest.versions.highest)
            software = ApiVersionsRequest(client_software_name="barnabas-conformance", client_software_version="1")
            answer = wire.ask(ApiKey.API_VERSIONS, software, version)
        finally:
            wire.close()
    except (Failed, KeyError) as error:
        raise CannotRun(f"the broker at {address} does not answer ApiVersions: {error}") from None
    return Target(
        bootstrap=address,
        nodes={each.node_id: Address(each.host, each.port) for each in metadata.brokers},
        controller=metadata.controller_id,
        versions={ApiKey(key): versions for key, versions in ranges.items() if key in _KNOWN},
        unknown_keys=sorted(key for key in ranges if key not in _KNOWN),
        features={each.name: each.max_version_level for each in answer.finalized_features},
        security=security,
    )
