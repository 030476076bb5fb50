"""A topic that cannot be created is an error at once; one that is being created is waited for."""

import pytest

from barnabas.client.client import Client
from barnabas.client.connection import Address
from barnabas.client.creation import find_or_create
from barnabas.client.errors import BrokerError
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.create_topics import CreatableTopicResult, CreateTopicsResponse
from barnabas.protocol.messages.describe_configs import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from tests.support.scripted_broker import ScriptedBroker


class Creating(ScriptedBroker):
    """A broker that may create topics on first use, and says so when it is asked."""

    def __init__(self, *, allowed="true", error=ErrorCode.NONE):
        super().__init__({ApiKey.DESCRIBE_CONFIGS: self.describe_configs, ApiKey.CREATE_TOPICS: self.validate})
        self.allowed = allowed
        self.error = error

    def describe_configs(self, request):
        (asked,) = request.resources
        (name,) = asked.configuration_keys
        found = DescribeConfigsResourceResult(name=name, value=self.allowed, read_only=True, is_sensitive=False)
        return DescribeConfigsResponse(
            results=[DescribeConfigsResult(resource_type=4, resource_name=asked.resource_name, configs=[found])]
        )

    def validate(self, request):
        assert request.validate_only
        result = CreatableTopicResult(name=request.topics[0].name, error_code=self.error, error_message="too few")
        return CreateTopicsResponse(topics=[result])


def created(broker, topic):
    with broker, Client([Address("127.0.0.1", broker.port)], timeout=20) as client:
        return find_or_create(client, topic)


def test_one_that_exists_is_found():
    broker = Creating()
    assert created(broker, "t").name == "t"
    assert not broker.requests(ApiKey.CREATE_TOPICS)


def test_one_that_appears_is_waited_for():
    broker = Creating()
    metadata = broker.metadata

    def appear(request):
        if len(broker.requests(ApiKey.METADATA)) > 5:
            broker.partitions["new"] = 2
        return metadata(request)

    broker.answers[ApiKey.METADATA] = appear
    assert len(created(broker, "new").partitions) == 2


def test_a_broker_that_does_not_create_topics(clock):
    started = clock.now
    with pytest.raises(BrokerError, match=r"create topics on first use \(auto\.create\.topics\.enable=false\)"):
        created(Creating(allowed="false"), "new")
    assert clock.now == started


def test_a_broker_that_would_refuse_to_create_it(clock):
    started = clock.now
    with pytest.raises(BrokerError, match=r"topic 'new' cannot be created: too few \(INVALID_REPLICATION_FACTOR\)"):
        created(Creating(error=ErrorCode.INVALID_REPLICATION_FACTOR), "new")
    assert clock.now == started


def test_one_that_somebody_else_is_creating_is_waited_for(clock):
    started = clock.now
    with pytest.raises(BrokerError, match="the broker did not create it"):
        created(Creating(error=ErrorCode.TOPIC_ALREADY_EXISTS), "new")
    assert clock.now - started > 20
