"""Messages as data."""

import json

import pytest

from barnabas.broker.testing.journal.data import summary_of_records, to_data
from barnabas.client.requests.data import produce
from barnabas.protocol.api import ApiKey, request_type, response_type
from barnabas.protocol.messages.alter_configs import AlterableConfig, AlterConfigsRequest, AlterConfigsResource
from barnabas.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from tests.support.batches import batch
from tests.support.sample_messages import UUID, sample


@pytest.mark.parametrize("key", list(ApiKey), ids=lambda key: key.api_name)
def test_every_message_of_every_version_becomes_json(key):
    for message in (request_type(key), response_type(key)):
        for version in message.versions:
            data = to_data(sample(message, version), version)
            assert json.loads(json.dumps(data)) == data
            assert set(data) == {name for name, spec in message.fields.items() if version in spec.versions}


def test_topic_ids_are_written_as_such():
    assert to_data(produce((UUID, 0, b"")), 13)["topic_data"][0]["topic_id"] == "00010203-0405-0607-0809-0a0b0c0d0e0f"


def test_secrets_are_left_out():
    assert "hunter2" not in json.dumps(to_data(SaslAuthenticateRequest(auth_bytes=b"hunter2"), 2))
    configs = [AlterableConfig(name="ssl.key.password", value="hunter2"), AlterableConfig(name="a", value="b")]
    resource = AlterConfigsResource(resource_type=4, resource_name="0", configs=configs)
    data = to_data(AlterConfigsRequest(resources=[resource], validate_only=False), 2)
    assert [each["value"] for each in data["resources"][0]["configs"]] == ["(hidden)", "b"]


def test_records_of_a_producer_are_shown_with_its_sequence():
    told = summary_of_records(batch(b"a", producer_id=7, producer_epoch=1, base_sequence=30))
    assert told["first_batch"]["producer_id"] == 7
    assert (told["first_batch"]["producer_epoch"], told["first_batch"]["base_sequence"]) == (1, 30)


@pytest.mark.parametrize("records", [b"", b"short", bytes(100)])
def test_a_size_that_no_batch_has_is_reported(records):
    assert summary_of_records(records) == {"bytes": len(records)}
