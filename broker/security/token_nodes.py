"""Where delegation tokens are in the registry, and what their nodes contain: as Kafka 3.9 stores them in ZooKeeper.

/delegation_token/tokens/ID                             {"version": 3, "owner": "User%3Aalice", "tokenRequester": …,
                                                        "renewers": […], "issueTimestamp": MS, "maxTimestamp": MS,
                                                        "expiryTimestamp": MS, "tokenId": ID}
/delegation_token/token_changes/token_change_SEQUENCE   ID: this token was created, changed or removed
"""

from __future__ import annotations

import json
from typing import Final
from urllib.parse import quote, unquote

from barnabas.broker.controller.znodes import MalformedNode
from barnabas.broker.registry.registry import Node
from barnabas.broker.registry.tree_operations import Create
from barnabas.broker.security.principal import Principal
from barnabas.broker.security.tokens import Token

ROOT: Final = "/delegation_token"
TOKENS: Final = f"{ROOT}/tokens"
CHANGES: Final = f"{ROOT}/token_changes"
SKELETON: Final = (ROOT, TOKENS, CHANGES)
"""The parent nodes without data, from the top."""

_CHANGE: Final = f"{CHANGES}/token_change_"
_VERSION: Final = 3
_FIRST_VERSION_WITH_REQUESTER: Final = 3


def path_of(token_id: str) -> str:
    return f"{TOKENS}/{token_id}"


def id_at(path: str) -> str | None:
    """The id of the token at a path; None where there is none."""
    token_id = path.removeprefix(f"{TOKENS}/")
    return token_id if token_id != path and "/" not in token_id else None


def announcement(token_id: str) -> Create:
    return Create(_CHANGE, token_id.encode(), sequential=True)


def write(token: Token) -> bytes:
    fields = {
        "version": _VERSION,
        "owner": _written(token.owner),
        "tokenRequester": _written(token.requester),
        "renewers": [_written(each) for each in token.renewers],
        "issueTimestamp": token.issued_at_ms,
        "maxTimestamp": token.max_at_ms,
        "expiryTimestamp": token.expires_at_ms,
        "tokenId": token.token_id,
    }
    return json.dumps(fields, separators=(",", ":")).encode()


def read(path: str, node: Node) -> Token:
    try:
        fields = json.loads(node.data)
        if not 0 < int(fields["version"]) <= _VERSION:
            raise ValueError(f"version {fields['version']} is not known")
        owner = _read(fields["owner"])
        with_requester = int(fields["version"]) >= _FIRST_VERSION_WITH_REQUESTER
        return Token(
            str(fields["tokenId"]),
            owner,
            _read(fields["tokenRequester"]) if with_requester else owner,
            tuple(map(_read, fields["renewers"])),
            int(fields["issueTimestamp"]),
            int(fields["expiryTimestamp"]),
            int(fields["maxTimestamp"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise MalformedNode(f"{path}: {error!r}") from error


def _written(principal: Principal) -> str:
    return quote(str(principal), safe="")


def _read(text: str) -> Principal:
    kind, colon, name = unquote(text).partition(":")
    if not colon:
        raise ValueError(f"{text!r} is not a principal")
    return Principal(kind, name)
