"""Share groups (KIP-932) with franz-go. (Java's share consumers: tests/integration/share/.)"""

import pytest

from barnabas import Barnabas
from barnabas.client.requests.admin import GROUP, SET, incremental_alter_configs
from barnabas.client.wire import Wire
from barnabas.protocol.api import ApiKey
from tests.integration.clients.driver import Opened
from tests.integration.clients.franz_go import FranzGoClient
from tests.integration.clients.interface import ProducerRecord, wait_until

pytestmark = pytest.mark.go

SETTINGS = {
    "group.share.min.heartbeat.interval.ms": "100",
    "group.share.heartbeat.interval.ms": "100",
    "group.share.assignment.interval.ms": "0",
}

Read = list[tuple[int, int]]  # offsets, and how often each has been delivered


def read(member: Opened, count: int, ack: str) -> Read:
    """The next records, each of which the member acknowledges."""
    found: Read = []

    def enough() -> bool:
        found.extend((each["offset"], each["delivery"]) for each in member.call("poll", ms=50, ack=ack))
        return len(found) >= count

    wait_until(enough, lambda: f"{count} records; there were {found}")
    return found


@pytest.fixture
def group(broker: Barnabas, new_name: str) -> str:
    """A share group that begins with the first record."""
    name = f"shares-of-{new_name}"
    with Wire("127.0.0.1", broker.port) as wire:
        earliest = incremental_alter_configs((GROUP, name, [(SET, "share.auto.offset.reset", "earliest")]))
        assert wire.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, earliest, 1).responses[0].error_code == 0
    return name


def test_what_a_member_releases_goes_to_the_next_and_what_it_accepts_to_nobody(
    franz_go: FranzGoClient, broker: Barnabas, new_name: str, group: str
):
    topic = broker.create_topic(new_name)
    broker.strict.start()
    franz_go.write(topic, *(ProducerRecord(b"%d" % number) for number in range(3)))
    one = franz_go.share_consumer(group, topic)
    assert read(one, 3, "release") == [(0, 1), (1, 1), (2, 1)]
    one.close()
    with franz_go.share_consumer(group, topic) as other:
        again = read(other, 3, "accept")
        assert [offset for offset, _ in again] == [0, 1, 2]
        assert all(delivery > 1 for _, delivery in again)  # how often: the first one may have fetched ahead
        franz_go.write(topic, ProducerRecord(b"3"))
        assert read(other, 1, "reject") == [(3, 1)]
    with franz_go.share_consumer(group, topic) as last:  # what was accepted or rejected does not come again
        franz_go.write(topic, ProducerRecord(b"4"))
        assert read(last, 1, "accept") == [(4, 1)]
    assert broker.strict.reports == []
