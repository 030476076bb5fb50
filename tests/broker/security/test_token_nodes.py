import json

import pytest

from barnabas.broker.controller.znodes import MalformedNode
from barnabas.broker.registry.registry import Node
from barnabas.broker.security import token_nodes
from barnabas.broker.security.principal import Principal
from barnabas.broker.security.tokens import Token

PATH = "/delegation_token/tokens/abc"
TOKEN = Token("abc", Principal("User", "alice"), Principal("User", "CN=bob/ü *~"), (Principal("User", "c:d"),), 1, 2, 3)


def test_a_token_is_written_as_kafka_3_9_writes_it():
    assert json.loads(token_nodes.write(TOKEN)) == {
        "version": 3,
        "owner": "User%3Aalice",
        "tokenRequester": "User%3ACN%3Dbob%2F%C3%BC%20%2A~",
        "renewers": ["User%3Ac%3Ad"],
        "issueTimestamp": 1,
        "maxTimestamp": 3,
        "expiryTimestamp": 2,
        "tokenId": "abc",
    }
    assert token_nodes.read(PATH, Node(token_nodes.write(TOKEN))) == TOKEN


def test_older_ones_have_no_requester():
    fields = json.loads(token_nodes.write(TOKEN)) | {"version": 1}
    del fields["tokenRequester"]
    assert token_nodes.read(PATH, Node(json.dumps(fields).encode())) == TOKEN._replace(requester=TOKEN.owner)


@pytest.mark.parametrize("change", [{"version": 4}, {"owner": "alice"}, {"renewers": None}, {"maxTimestamp": "soon"}])
def test_what_cannot_be_read(change):
    fields = json.loads(token_nodes.write(TOKEN)) | change
    with pytest.raises(MalformedNode, match=PATH):
        token_nodes.read(PATH, Node(json.dumps(fields).encode()))


def test_paths():
    assert token_nodes.path_of("abc") == PATH
    assert token_nodes.id_at(PATH) == "abc"
    assert token_nodes.id_at("/delegation_token/tokens") is None
    assert token_nodes.id_at("/delegation_token/tokens/a/b") is None
