"""How many share sessions a broker may have: who comes later waits in vain, until somebody ends or goes."""

import pytest

from barnabas.client.requests.shares import ACCEPT
from barnabas.protocol.errors import ErrorCode
from tests.integration.share.conftest import SETTINGS
from tests.integration.share.test_fetching import WAIT, begin
from tests.support.apache_kafka import ApacheKafka
from tests.support.broker_process import BrokerProcess
from tests.support.polling import pause
from tests.support.share_side import ShareSide
from tests.support.side_by_side import SideBySide

pytestmark = pytest.mark.java

# Apache Kafka wants room for every member that a group may have.
TWO = {**SETTINGS, "group.share.max.share.sessions": "2", "group.share.max.size": "2"}


@pytest.fixture(scope="module")
def brokers(tmp_path_factory):
    with ApacheKafka(TWO) as kafka, BrokerProcess(tmp_path_factory.mktemp("data"), settings=TWO) as barnabas:
        sides = SideBySide(ShareSide(kafka.port), ShareSide(barnabas.port))
        for side in (sides.kafka, sides.barnabas):
            side.wait_for_coordinator()
        yield sides
        for side in (sides.kafka, sides.barnabas):
            side.begin("nobody")  # closes the connections of members
            side.close()


def test_the_limit_of_share_sessions(tell):
    def story(side):
        place = begin(side, 6, topic="limit")
        yield side.fetch("a", 0, place, **WAIT)
        yield side.acknowledge("a", 1, {place: [(0, 5, [ACCEPT])]})  # this is about sessions, not about records
        yield side.fetch("b", 0, place, max_wait_ms=100)
        refused = side.fetch("c", 0, place, max_wait_ms=100)
        assert refused.error_code == ErrorCode.SHARE_SESSION_LIMIT_REACHED
        yield refused
        yield side.fetch("c", 1)
        yield side.acknowledge("c", 1, {place: [(0, 0, [ACCEPT])]})
        yield side.fetch("b", 0, place, max_wait_ms=100)  # it may begin again
        yield side.fetch("a", -1)
        yield side.fetch("c", 0, place, max_wait_ms=100)
        yield side.fetch("a", 0, place, max_wait_ms=100)
        side.leave("b")
        # A broker notices some time later that a connection is gone.
        while (answer := side.fetch("a", 0, place, max_wait_ms=100)).error_code:
            assert answer.error_code == ErrorCode.SHARE_SESSION_LIMIT_REACHED
            pause()
        yield side.fetch("a", 1)

    tell(story)
