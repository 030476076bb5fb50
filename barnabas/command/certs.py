"""`barnabas certs`: certificates for development."""

from __future__ import annotations

import argparse
from typing import Any, Final

from barnabas.broker.security.development import make_certificates
from barnabas.broker.security.errors import SecurityError
from barnabas.client_settings import Access, client_settings
from barnabas.command.ending import UsageError
from barnabas.command.parser import add_actions

_DEFAULT_FOLDER: Final = "certs"
_ADDRESS: Final = "localhost:9093"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = add_actions(parser)
    summary = "create an authority, and certificates for a broker and a client, and print how to use them"
    init = actions.add_parser("init", help=summary, description=summary)
    init.add_argument(
        "folder",
        metavar="DIR",
        nargs="?",
        default=_DEFAULT_FOLDER,
        help=f"where they are (default: {_DEFAULT_FOLDER}); existing files are kept",
    )
    init.add_argument(
        "--host",
        metavar="NAME",
        action="append",
        default=[],
        help="a name or address of the broker besides localhost; may be repeated, and creates a new server certificate",
    )
    init.add_argument("--client", metavar="NAME", default="client", help="the client's name (default: client)")
    init.set_defaults(run=_init)


def _init(options: argparse.Namespace) -> int:
    try:
        files = make_certificates(options.folder, options.host, options.client)
    except (SecurityError, OSError) as error:
        raise UsageError(str(error)) from None
    print(f"# the broker: barnabas serve --listen SSL://127.0.0.1:9093 with these settings\n{_broker(files)}")
    access = Access(_ADDRESS, "SSL", ca=files.ca, certificate=files.client)
    for title, library in (("librdkafka and confluent-kafka", "confluent"), ("Java", "java")):
        print(f"\n# {title}")
        _print_properties(client_settings(library, access))
    print("\n# kafka-python")
    print(client_settings("kafka-python", access))
    print("\n# aiokafka")
    print("from aiokafka.helpers import create_ssl_context")
    context = f"create_ssl_context(cafile={files.ca!r}, certfile={files.client!r}, keyfile={files.client!r})"
    print(f'{{"bootstrap_servers": "{_ADDRESS}", "security_protocol": "SSL", "ssl_context": {context}}}')
    return 0


def _broker(files: Any) -> str:
    settings = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": files.server,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": files.ca,
        "ssl.client.auth": "required",
    }
    return "\n".join(f"{name}={value}" for name, value in settings.items())


def _print_properties(settings: dict[str, Any]) -> None:
    for name, value in settings.items():
        print(f"{name}={value}")
