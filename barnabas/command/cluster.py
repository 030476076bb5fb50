"""`barnabas cluster`: the id, the brokers and the features of a cluster."""

from __future__ import annotations

import argparse
from typing import Any, Final

from barnabas.client.client import Client
from barnabas.client.connection import Address
from barnabas.command.arguments import add_connection, add_json, client
from barnabas.command.table import as_json, render
from barnabas.printable import printable
from barnabas.protocol.api import ApiKey

_BROKERS: Final = {"id": "ID", "address": "ADDRESS", "rack": "RACK", "controller": "CONTROLLER"}
_FEATURES: Final = {"feature": "FEATURE", "finalized": "FINALIZED", "supported": "SUPPORTED"}
_APIS: Final = {"api": "API", "key": "KEY", "versions": "VERSIONS"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--apis", action="store_true", help="also show the APIs and their versions")
    add_json(parser, "print JSON instead of tables")
    add_connection(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    with client(options) as connected:
        found = describe(connected)
    if options.json:
        print(as_json(found))
        return 0
    controller = "none" if found["controller"] is None else f"broker {found['controller']}"
    print(printable(f"Cluster {found['cluster_id'] or '(without an id)'}, controller: {controller}"))
    print(render(_BROKERS, found["brokers"]))
    if found["features"]:
        print("\n" + render(_FEATURES, found["features"]))
    if options.apis:
        print("\n" + render(_APIS, found["apis"]))
    return 0


def describe(client: Client) -> dict[str, Any]:
    metadata = client.metadata([])
    controller = metadata.controller_id if metadata.controller_id >= 0 else None
    versions = client.any_broker().api_versions
    finalized = {each.name: each.max_version_level for each in versions.finalized_features}
    supported = {each.name: (each.min_version, each.max_version) for each in versions.supported_features}
    return {
        "cluster_id": metadata.cluster_id,
        "controller": controller,
        "brokers": [
            {
                "id": each.node_id,
                "address": str(Address(each.host, each.port)),
                "rack": each.rack,
                "controller": each.node_id == controller,
            }
            for each in sorted(metadata.brokers, key=lambda each: each.node_id)
        ],
        "features": [
            {
                "feature": name,
                "finalized": finalized.get(name),
                "supported": _range(*supported[name]) if name in supported else None,
            }
            for name in sorted({*finalized, *supported})
        ],
        "apis": [
            {
                "api": _api_name(each.api_key),
                "key": each.api_key,
                "versions": _range(each.min_version, each.max_version),
            }
            for each in sorted(versions.api_keys, key=lambda each: each.api_key)
        ],
    }


def _range(lowest: int, highest: int) -> str:
    return str(lowest) if lowest == highest else f"{lowest}-{highest}"


def _api_name(key: int) -> str | None:
    """A later Kafka may have APIs that are not known here."""
    try:
        return ApiKey(key).api_name
    except ValueError:
        return None
