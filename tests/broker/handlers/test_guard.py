"""With an authorizer, every API is checked, by its handler or as a whole, or it is only for super users."""

from types import SimpleNamespace

import pytest

from barnabas.broker.handlers.guard import CHECKED_BY_HANDLERS, FREE, ON_CLUSTER, guarded, refusal
from barnabas.broker.security.authorizer import Authorizer
from barnabas.broker.security.principal import Principal
from barnabas.protocol.api import ApiKey, request_type, response_type
from barnabas.protocol.encoder import encoder
from tests.support.running_broker import running
from tests.support.sample_messages import sample


class Asked:
    def __init__(self, key, access):
        self.api_key = key
        self.connection = SimpleNamespace(access=access)
        self.failed = None

    def fail(self, reason):
        self.failed = reason


def access(name):
    return Authorizer(["User:root"], False).access(Principal("User", name), "10.0.0.1")


async def test_every_api_that_is_served_is_in_one_of_the_tables(tmp_path):
    async with running(tmp_path) as broker:
        served = set(broker.server.dispatcher.apis)
    assert served <= FREE | CHECKED_BY_HANDLERS | set(ON_CLUSTER)
    assert not CHECKED_BY_HANDLERS & set(ON_CLUSTER)


def test_an_api_in_none_of_them_is_for_super_users():
    handle = guarded(ApiKey.UPDATE_FEATURES, lambda request, message: "done")
    assert handle(Asked(ApiKey.UPDATE_FEATURES, None), None) == "done"  # without an authorizer, for everybody
    assert handle(Asked(ApiKey.UPDATE_FEATURES, access("root")), None) == "done"
    asked = Asked(ApiKey.UPDATE_FEATURES, access("alice"))
    assert handle(asked, None) is None
    assert asked.failed == "UpdateFeatures is for super users"


@pytest.mark.parametrize("key", ON_CLUSTER, ids=lambda key: key.name)
def test_a_refusal_can_be_sent_in_every_version(key):
    for version in response_type(key).versions:
        answer = refusal(key, sample(request_type(key), version))
        encoder(response_type(key), version)(answer, bytearray(), [])
