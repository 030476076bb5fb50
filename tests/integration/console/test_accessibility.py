"""Every view for people with a screen reader or bad eyes: what axe finds, in light and in dark."""

import json

import pytest
from confluent_kafka import Producer

from barnabas import Barnabas
from tests.support import axe
from tests.support.browser import MISSING

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(MISSING is not None, reason=MISSING or ""),
    pytest.mark.skipif(axe.MISSING is not None, reason=axe.MISSING or ""),
]

_VIEWS = {
    "": "Messages in",
    "topics": "orders",
    "topics/orders": "High watermark",
    "topics/orders/messages": "newest first",
    "groups": "castle",
    "groups/castle": "Committed",
    "clients": "Requests since",
    "transactions": "shop-1",
    "transactions/shop-1": "Its last transactions",
    "brokers": "Who led when",
    "pipelines": "No pipelines",
    "journal": "Broken rules",
    "control": "Snapshots",
    "topics/none": "there is no topic",
}


@pytest.fixture(scope="module")
def broker():
    with Barnabas(brokers=2, arguments=("--console", "127.0.0.1:0"), journal=False) as broker:
        broker.create_topic("orders", partitions=2)
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "shop-1"})
        producer.init_transactions(30)
        producer.begin_transaction()
        producer.produce("orders", json.dumps({"id": 1}), key="customer", headers={"trace": b"\xff"})
        producer.flush(30)
        _consume(broker)
        yield broker


def _consume(broker):
    from kafka import KafkaConsumer

    settings = {"bootstrap_servers": broker.bootstrap_servers, "auto_offset_reset": "earliest"}
    with KafkaConsumer("orders", group_id="castle", **settings) as consumer:
        while not consumer.poll(timeout_ms=1000):
            pass
        consumer.commit()


@pytest.fixture(scope="module", autouse=True)
def script():
    try:
        return axe.script()
    except axe.AxeUnavailable as error:
        pytest.skip(f"npm could not fetch axe: {error}")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(page, scheme):
    found = {}
    page.browser.emulate(prefers_color_scheme=scheme)
    for path, text in _VIEWS.items():
        page.go(path)
        page.browser.until(text)
        if path.endswith("messages"):
            page.browser.until("customer")
            page.browser.click("details.message > summary")
            page.browser.until("CRC-32C")
        if problems := axe.violations(page.browser):
            found[path] = problems
    assert found == {}
