"""What one does on the page: grow and alter topics, delete and replay messages, faults, snapshots; and signing in."""

import pytest
from kafka import KafkaProducer

from barnabas import Barnabas
from tests.support.browser import MISSING, chromium

pytestmark = [pytest.mark.slow, pytest.mark.skipif(MISSING is not None, reason=MISSING or "")]

_CONSOLE = ("--console", "127.0.0.1:0")


@pytest.fixture(scope="module")
def broker():
    with Barnabas(arguments=_CONSOLE, journal=False) as broker:
        yield broker


@pytest.fixture
def orders(broker):
    broker.reset()
    broker.create_topic("orders")
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        for number in range(3):
            producer.send("orders", f"order {number}".encode(), key=b"k").get()


def partitions(broker, topic):
    return broker.state["topics"][topic]["partitions"]


def test_a_topic_is_grown_altered_and_emptied(page, broker, orders):
    page.go("topics/orders")
    page.browser.click("summary", "Add partitions")
    page.browser.type("input[aria-label='Partitions it should have']", "3")
    page.browser.click("details[open] button", "Add")
    page.browser.until("It has 3 partitions now.")
    assert len(partitions(broker, "orders")) == 3
    page.browser.click("summary", "Change a setting")
    page.browser.choose("select[aria-label=Setting]", "retention.ms")
    page.browser.type("input[aria-label=Value]", "123456")
    page.browser.click("details[open] button", "Change")
    page.browser.until("retention.ms is 123456 now.")
    assert broker.state["topics"]["orders"]["configs"] == {"retention.ms": "123456"}
    page.browser.click("summary", "Delete messages")
    page.browser.click("details[open] button", "Delete messages")
    page.browser.until("Gone. First offsets now: 3, 0, 0")
    assert [row["log_start_offset"] for row in partitions(broker, "orders")] == [3, 0, 0]


def test_messages_are_replayed(page, broker, orders):
    broker.create_topic("again")
    page.go("topics/orders/messages")
    page.browser.until("order 0")
    page.browser.click("input[aria-label='Choose message 0 of partition 0']")
    page.browser.click("input[aria-label='Choose message 2 of partition 0']")
    page.browser.until("Write 2 messages again")
    page.browser.type("input[aria-label='Topic to write them to']", "again")
    page.browser.click("button", "Replay")
    page.browser.until("Written to again: partition 0 from offset 0.")
    assert partitions(broker, "again")[0]["log_end_offset"] == 2


def test_faults_the_clock_and_snapshots_at_a_click(page, broker, orders):
    page.go("control")
    page.browser.until("None: everything works as it should.")
    page.browser.type("input[aria-label=Request]", "Produce")
    page.browser.type("input[aria-label='How often']", "2")
    page.browser.click("button", "Add")
    page.browser.until("The fault is active.", "error=NOT_LEADER_OR_FOLLOWER")
    page.browser.click("button", "Remove 1")
    page.browser.until("None: everything works as it should.")
    page.browser.click("button", "1 h")
    page.browser.until("The clock is 1 h further.", "ahead")
    assert broker.state["clock"]["ahead_ms"] >= 3_600_000
    page.browser.type("input[aria-label='Name of a snapshot']", "before")
    page.browser.click("button", "Take a snapshot")
    page.browser.until("The snapshot is taken.", "Put before back")
    page.browser.click("summary", "Reset the broker")
    page.browser.click("button", "Delete everything")
    page.browser.until("Nothing is left")
    assert "orders" not in broker.state["topics"]
    page.browser.click("button", "Put before back")
    page.browser.until("All is as in before.")
    assert partitions(broker, "orders")[0]["log_end_offset"] == 3


def test_rules_that_clients_break_are_reported(page, broker, orders):
    page.go("journal")
    page.browser.click("button", "Check the rules")
    page.browser.until("Everybody keeps to the rules so far.")
    page.browser.click("button", "Stop checking")
    page.browser.until("Check the rules")


def test_one_signs_in_and_sees_what_one_may():
    users = {"admin": "a-secret", "alice": "b-secret"}
    acls = [
        {"user": "alice", "allow": ["describe"], "topic": "shared"},
        {"user": "admin", "allow": ["all"], "topic": "*"},
    ]
    with (
        Barnabas(security="sasl_plaintext", users=users, acls=acls, arguments=_CONSOLE) as broker,
        chromium() as browser,
    ):
        broker.create_topic("secret")
        broker.create_topic("shared")
        browser.go(broker.console_url)
        browser.until("Sign in", "Password")
        browser.type("#user", "alice")
        browser.type("#password", "wrong", enter=True)
        browser.until("this is not the name and the password of a user")
        browser.type("#password", "b-secret", enter=True)
        browser.until("alice", "Sign out", "shared", "1 topic")
        assert "secret" not in browser.text
        browser.click("button", "Sign out")
        browser.until("Password")
        browser.complaints()  # the wrong password is one
        browser.type("#user", "admin")
        browser.type("#password", "a-secret", enter=True)
        browser.until("admin", "secret", "shared")
        assert browser.complaints() == []
