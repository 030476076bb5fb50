"""The console's page in a real browser, over a broker that real clients use."""

import json
import os
import re
from pathlib import Path
from urllib.parse import quote
from urllib.request import Request, urlopen

import pytest
from confluent_kafka import Consumer, Producer
from kafka import KafkaConsumer, KafkaProducer

from barnabas import Barnabas
from tests.support.browser import MISSING, chromium
from tests.support.kafka_python import wait_for_topic

pytestmark = [pytest.mark.slow, pytest.mark.skipif(MISSING is not None, reason=MISSING or "")]

_HOSTILE = '<img src=x onerror="document.title=1"><script>document.title=2</script>'


@pytest.fixture(scope="module")
def broker():
    """A broker that the console may change, with some orders and a group that has read them."""
    arguments = ("--console", "127.0.0.1:0", "--console-write")
    with Barnabas(arguments=arguments, journal=False) as broker:
        broker.create_topic("orders", partitions=2, configs={"retention.ms": 604800000})
        with KafkaProducer(bootstrap_servers=broker.bootstrap_servers, client_id="shop") as producer:
            for number in range(30):
                value = json.dumps({"id": number, "items": [{"sku": "A"}]}).encode()
                producer.send("orders", value, key=b"customer-7", headers=[("trace", b"\xff\x00")], partition=0)
            producer.send("orders", _HOSTILE.encode(), key=_HOSTILE.encode(), headers=[(_HOSTILE, b"x")], partition=1)
        settings = {"bootstrap_servers": broker.bootstrap_servers, "auto_offset_reset": "earliest"}
        with KafkaConsumer("orders", group_id="castle", client_id="surveyor", **settings) as consumer:
            wait_for_topic(consumer, "orders")
            seen = 0
            while seen < 31:
                seen += sum(map(len, consumer.poll(timeout_ms=1000).values()))
            consumer.commit()
        yield broker


def test_at_first_glance_topics_groups_and_clients(page, broker):
    page.go()
    page.browser.until("orders", "castle", "Messages in", "31", "1 broker")
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers, client_id="late-shop") as producer:
        producer.send("orders", b"one more", partition=1).get()
        page.browser.until("late-shop", "32")  # it comes by itself


def test_a_topic_with_settings_and_where_they_come_from(page):
    page.go("topics")
    page.browser.click("a", "orders")
    page.browser.until("High watermark", "retention.ms", "604800000", "this topic", "Read by castle")
    page.browser.click("button[aria-label='Files of partition 0']")
    page.browser.until("Files of partition 0", "00000000000000000000.log")


def test_messages_are_found_and_shown_in_all_forms(page):
    page.go("topics/orders/messages")
    page.browser.until("customer-7")
    page.browser.type("input[type=search]", '"id": 7,', enter=True)
    page.browser.until("1 message found among")
    page.browser.click("details.message > summary")
    page.browser.until("Key", "Value", "Headers", "CRC-32C", "Producer")
    page.browser.until('"sku": "A"')
    page.browser.click(".inside button", "Hex")
    page.browser.until("000000")


def test_what_a_record_contains_is_text_and_nothing_else(page):
    page.go("topics/orders/messages")
    page.browser.choose("select[aria-label=Partition]", "1")
    page.browser.until("<script>document.title=2</script>")
    page.browser.click("details.message > summary", "<img")
    page.browser.until("Headers")
    assert page.browser.run("return document.title") == "orders · Barnabas"
    assert page.browser.run("return document.querySelectorAll('main img, main script').length") == 0


def test_a_group_whose_name_is_hostile_is_text_too(page, broker):
    settings = {"bootstrap_servers": broker.bootstrap_servers, "auto_offset_reset": "earliest"}
    with KafkaConsumer("orders", group_id=_HOSTILE, client_id=_HOSTILE[:40], **settings) as consumer:
        wait_for_topic(consumer, "orders")
        while not consumer.poll(timeout_ms=1000):
            pass
        consumer.commit()
        page.go("groups")
        page.browser.until("<img src=x")
        page.browser.click("a", "<img")
        page.browser.until("Offsets", "Members", "assigned by range")
        assert page.browser.run("return document.querySelectorAll('main img, main script').length") == 0


def test_a_name_does_not_turn_around_the_text_beside_it(page, broker):
    """A character that turns the direction of writing is named, and so is one that controls a terminal."""
    settings = {"bootstrap_servers": broker.bootstrap_servers, "auto_offset_reset": "earliest"}
    group, client = "invoice\u202egpj.exe", "shop\u202e\x1b"
    with KafkaConsumer("orders", group_id=group, client_id=client, **settings) as consumer:
        wait_for_topic(consumer, "orders")
        while not consumer.poll(timeout_ms=1000):
            pass
        consumer.commit()
        page.go("groups")
        page.browser.click("a", "invoice\\u202egpj.exe")  # and its link still leads to the group
        page.browser.until("a member joined: shop\\u202e\\u001b.", "Members")
        assert "\u202e" not in page.browser.text


def test_a_message_of_another_day_has_its_date(page, broker):
    broker.create_topic("z-old")
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        producer.send("z-old", b"long ago", timestamp_ms=1).get()
        producer.send("z-old", b"of today").get()
    page.go("topics/z-old/messages")
    page.browser.until("long ago", "of today")
    today, before = page.browser.run(
        "return [...document.querySelectorAll('.message .when')].map((each) => each.innerText)"
    )
    assert re.fullmatch(r"\d\d:\d\d:\d\d\.\d{3}", today)
    assert re.fullmatch(r"19(70-01-01|69-12-31) \d\d:\d\d", before)


def test_what_is_no_time_on_a_calendar_is_shown_as_it_is(page):
    page.go()
    page.browser.until("orders")
    found = page.browser.run_async(
        "const [told] = arguments; import('/page/words.js').then((words) =>"
        " told([-1, 9e17].map((ms) => [words.time(ms), words.moment(ms), words.clockTime(ms)])))"
    )
    assert found == [["no time"] * 3, ["900000000000000000"] * 3]


def _announce(broker, told):
    """As a pipeline does."""
    headers = {"Content-Type": "application/json"}
    post = Request(f"{broker.console_url}api/pipelines", data=json.dumps(told).encode(), headers=headers, method="POST")
    urlopen(post).close()


def test_what_producers_and_pipelines_are_called_is_text_too(page, broker):
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": _HOSTILE})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce("orders", b"x", partition=1)
    producer.flush(30)
    query = {"name": _HOSTILE, "sources": [{"topic": _HOSTILE}], "sinks": [{"path": _HOSTILE}], "read": 1}
    told = {"name": _HOSTILE, "run": "1", "state": "failed", "words": _HOSTILE, "plan": _HOSTILE, "queries": [query]}
    _announce(broker, told)
    for path in ("transactions", f"transactions/{quote(_HOSTILE, safe='')}", "pipelines"):
        page.go(path)
        page.browser.until("<script>document.title=2</script>")
        assert page.browser.run("return document.querySelectorAll('main img, main script').length") == 0
        assert page.browser.run("return document.title") not in ("1", "2")
    producer.abort_transaction(30)


def test_new_messages_appear_by_themselves(page, broker):
    page.go("topics/orders/messages")
    page.browser.until("customer-7")
    page.browser.choose("select[aria-label='Which messages']", "live")
    page.browser.until("Waiting for messages")
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        number = 0
        while "hot off the press" not in page.browser.text:  # until the stream is there
            number += 1
            producer.send("orders", f"hot off the press {number}".encode()).get()
    page.browser.until("since you opened it")


def test_a_message_that_is_being_read_stays_where_it_is(page, broker):
    """Whatever comes meanwhile waits until it is closed."""
    broker.create_topic("z-busy")
    page.go("topics/z-busy/messages")
    page.browser.until("No messages yet")
    page.browser.choose("select[aria-label='Which messages']", "live")
    page.browser.until("Waiting for messages")
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        while "early bird" not in page.browser.text:
            producer.send("z-busy", b"early bird").get()
        page.browser.click("details.message > summary")
        page.browser.until("CRC-32C")
        producer.send("z-busy", b"latecomer").get()
        page.browser.until("New ones wait while a message is unfolded")
        assert "latecomer" not in page.browser.text
        assert page.browser.run("return document.querySelectorAll('details.message[open]').length") == 1
        page.browser.click("details.message[open] > summary")
        page.browser.until("latecomer")
    assert "CRC-32C" not in page.browser.text


def test_an_entry_of_the_journal_that_is_being_read_stays_where_it_is(page, broker):
    page.go("journal")
    page.browser.click("button", "Turn it on")
    page.browser.until("Turn it off")
    KafkaProducer(bootstrap_servers=broker.bootstrap_servers, client_id="early").close()
    page.browser.until("early")
    page.browser.click("details.entry > summary")
    KafkaProducer(bootstrap_servers=broker.bootstrap_servers, client_id="latecomer").close()
    page.browser.until("new ones wait while one is unfolded")
    assert "latecomer" not in page.browser.text
    page.browser.click("details.entry[open] > summary")
    page.browser.until("latecomer")
    page.browser.click("button", "Turn it off")
    page.browser.until("Turn it on")


def test_the_page_updates_around_what_somebody_does(page, broker):
    """What is unfolded, selected, focused or scrolled stays so, while the figures change."""
    page.browser.resize(500, 900)
    page.go("groups/castle")
    page.browser.until("Committed")
    page.browser.click("details.meanings > summary")
    page.browser.run(
        "document.querySelector('[data-row]').focus(); document.querySelector('.scroll').scrollLeft = 9;"
        "getSelection().selectAllChildren(document.querySelector('h2'))"
    )
    before = page.browser.run("return document.querySelector('.figure').textContent")
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        producer.send("orders", b"one more", partition=0).get()
    figure = "return document.querySelector('.figure').textContent"
    page.browser._until(lambda: page.browser.run(figure) != before, lambda: page.browser.text)
    assert page.browser.run(
        "return [document.querySelector('details.meanings').open, document.querySelector('.scroll').scrollLeft,"
        "document.activeElement.textContent, getSelection().toString()]"
    ) == [True, 9, "orders", "Offsets"]


def test_what_one_does_reaches_what_is_shown_now(page, broker):
    """An element stays when it is updated, and does what the new one would have done."""
    for number in range(60):
        broker.create_topic(f"z-many-{number:02}")
    page.go("topics")
    for expected in ("page 2 of 2", "page 1 of 2", "page 2 of 2"):
        page.browser.click("button", "Next" if "2 of" in expected else "Previous")
        page.browser.until(expected)


def test_numbers_are_shown_as_they_are_written(page, broker):
    """A browser would make 9007199254740992 of it."""
    broker.create_topic("z-numbers")
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        producer.send("z-numbers", b'{"id": 9007199254740993, "price": 1.50, "at": [1e3]}').get()
    page.go("topics/z-numbers/messages")
    page.browser.click("details.message > summary")
    page.browser.until('"id": 9007199254740993', '"price": 1.50', "1e3")


def test_a_download_has_all_of_a_long_message(page, broker):
    broker.create_topic("z-long")
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        producer.send("z-long", b"x" * 100_000, key=b"k").get()
    page.go("topics/z-long/messages")
    page.browser.until("xxxx")
    page.browser.run(
        "URL.createObjectURL = (file) => { file.text().then((it) => { window.downloaded = it; }); return 'blob:x'; };"
        "HTMLAnchorElement.prototype.click = () => {};"
    )
    page.browser.click("button", "Download")
    page.browser.until("1 message in z-long.jsonl.")
    page.browser._until(lambda: page.browser.run("return window.downloaded"), lambda: "nothing was downloaded")
    (line,) = page.browser.run("return window.downloaded").splitlines()
    assert json.loads(line)["value"] == "x" * 100_000


def test_of_headers_nothing_is_left_out_without_a_word(page, broker):
    broker.create_topic("z-headers")
    headers = [("long", b"y" * 3000), ("longer", b"z" * 9000), *((f"h{number}", b"x") for number in range(60))]
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        producer.send("z-headers", b"value", headers=headers).get()
    page.go("topics/z-headers/messages")
    page.browser.click("details.message > summary")
    page.browser.until("y" * 3000, "… 8.8 KiB, cut", "and 12 more")
    page.browser.click("button", "Show more of it")
    page.browser.until("z" * 9000, "h59")
    assert "cut" not in page.browser.text
    page.browser.run(
        "URL.createObjectURL = (file) => { file.text().then((it) => { window.downloaded = it; }); return 'blob:x'; };"
        "HTMLAnchorElement.prototype.click = () => {};"
    )
    page.browser.click("button", "Download")
    page.browser._until(lambda: page.browser.run("return window.downloaded"), lambda: "nothing was downloaded")
    (line,) = page.browser.run("return window.downloaded").splitlines()
    assert json.loads(line)["headers"] == [[name, value.decode()] for name, value in headers]


def test_offsets_are_moved_after_a_look_at_the_plan(page, broker):
    page.go("groups/castle")
    page.browser.until("Move its offsets", "Nobody is in this group now.")
    page.browser.click("summary", "Move its offsets")
    page.browser.click("button", "Preview")
    page.browser.until("Move 2 offsets")
    page.browser.click("button", "Move 2 offsets")
    page.browser.until("Moved at")
    assert {row["offset"] for row in broker.state["groups"]["castle"]["offsets"]} == {0}


def test_the_curve_of_a_groups_lag_begins_before_the_page_is_opened(page, broker):
    watch = quote(json.dumps({"lag": {"view": "lag", "name": "castle"}}))
    with urlopen(f"{broker.console_url}api/live?watch={watch}") as looks:
        for line in looks:
            news = json.loads(line.removeprefix(b"data: ")) if line.strip() else {}
            if len(news.get("lag", {}).get("times", ())) > 1:
                break
    page.go("groups/castle")
    page.browser.until("messages behind; since")
    assert page.browser.run("return document.querySelector('.spark polyline').points.numberOfItems") > 2


def test_errors_are_shown_with_the_requests_that_got_them(page, broker):
    broker.create_topic("small", configs={"max.message.bytes": 200})
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers, retries=0) as producer:
        with pytest.raises(Exception, match=r"TooLarge|too large"):
            producer.send("small", b"x" * 1000).get()
    page.go("clients")
    page.browser.until("Errors", "MESSAGE_TOO_LARGE")


def test_a_topic_is_made_written_to_and_deleted(page, broker):
    page.go("topics")
    page.browser.type("input[aria-label='Name of a new topic']", "made-here", enter=True)
    page.browser.until("made-here", "Everything has its default.")
    page.browser.click("a", "Messages")
    page.browser.until("No messages yet")
    page.browser.click("summary", "Produce one")
    page.browser.type("textarea", "Hello, K.")
    page.browser.click("button", "Produce")
    page.browser.until("Written: partition 0, offset 0.", "1 message", "Hello, K.")
    page.browser.click("a", "Partitions and settings")
    page.browser.click("summary", "Delete this topic")
    page.browser.type("input[aria-label='Name of the topic, to confirm']", "made-here")
    page.browser.click("details[open] button", "Delete")
    page.browser.until_gone("made-here")
    assert "made-here" not in broker.state["topics"]


def test_the_journal_is_turned_on_and_shows_requests(page, broker):
    page.go("journal")
    page.browser.click("button", "Turn it on")
    page.browser.until("Turn it off")
    KafkaProducer(bootstrap_servers=broker.bootstrap_servers, client_id="watched").close()
    page.browser.until("watched", "ApiVersions")
    page.browser.click("button", "Turn it off")
    page.browser.until("Turn it on")


def test_the_keyboard_is_enough(page):
    page.go()
    page.browser.until("orders")
    page.browser.keys("gt")
    page.browser.until("internal ones too", "KiB")  # its rows, too
    page.browser.keys("j")
    focused = "return document.activeElement.textContent"
    page.browser._until(lambda: page.browser.run(focused) == "orders", lambda: page.browser.run(focused))
    page.browser.keys("/")
    assert page.browser.run("return document.activeElement.type") == "search"
    page.go("clients")
    page.browser.until("Requests since the start")
    page.browser.keys("?")
    page.browser.until("Next and previous row")


_ALL_VIEWS = ("", "topics", "topics/orders", "topics/orders/messages", "groups/castle", "clients", "transactions")
_ALL_VIEWS += ("pipelines", "journal", "control", "brokers")


def test_nothing_sticks_out_on_a_telephone(page, broker):
    page.browser.resize(500, 900)
    _announce(broker, {"name": "wide", "run": "wide", "state": "running", "plan": "Project [" + "column, " * 500 + "]"})
    for path in _ALL_VIEWS:
        page.go(path)
        page.browser.until("Barnabas", "broker, up")
        if path == "pipelines":
            page.browser.click("article[data-key=wide] summary", "Plan")
            page.browser.until("Project [column")
        wide = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert page.browser.run(wide) == 0, path


def test_every_control_has_a_name(page):
    """What a screen reader says of it."""
    for path in ("", "topics", "topics/orders", "topics/orders/messages", "groups/castle", "journal"):
        page.go(path)
        page.browser.until("broker, up")
        nameless = page.browser.run(
            "return [...document.querySelectorAll('button, a, input, select, textarea, meter, svg[role=img]')]"
            ".filter((each) => !(each.textContent.trim() || each.getAttribute('aria-label') || each.labels?.length))"
            ".map((each) => each.outerHTML)"
        )
        assert nameless == []


def test_pictures(page, tmp_path):
    """Pictures of the views, for whoever wants to look: BARNABAS_PICTURES=DIR."""
    folder = Path(os.environ.get("BARNABAS_PICTURES", tmp_path))
    for name, path, text in (
        ("overview", "", "castle"),
        ("topic", "topics/orders", "High watermark"),
        ("messages", "topics/orders/messages", "newest first"),
        ("group", "groups/castle", "Committed"),
        ("clients", "clients", "Requests since"),
        ("journal", "journal", "The journal is off"),
    ):
        for scheme in ("light", "dark"):
            page.browser.emulate(prefers_color_scheme=scheme)
            page.go(path)
            page.browser.until(text)
            page.browser.picture(folder / f"{name}-{scheme}.png")
            assert (folder / f"{name}-{scheme}.png").stat().st_size > 10_000


def test_empty_places_say_what_to_do():
    with Barnabas(arguments=("--console", "127.0.0.1:0")) as broker, chromium() as browser:
        browser.go(broker.console_url)
        browser.until("No topics yet", "topics create greetings", "No groups yet", "Nobody is connected")
        assert browser.complaints() == []


def _kafka_python(broker, client_id):
    consumer = KafkaConsumer(
        "told",
        bootstrap_servers=broker.bootstrap_servers,
        group_id="told-by-kafka-python",
        client_id=client_id,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    wait_for_topic(consumer, "told")
    return consumer


def _confluent(broker, client_id):
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "told-by-confluent",
            "client.id": client_id,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe(["told"])
    return consumer


def _poll(consumer):
    if isinstance(consumer, KafkaConsumer):
        consumer.poll(timeout_ms=50)
    else:
        consumer.poll(0.05)


@pytest.mark.parametrize("make", [_kafka_python, _confluent], ids=["kafka-python", "confluent"])
def test_a_rebalance_is_told_in_words_and_as_a_picture(page, broker, make, tmp_path):
    if "told" not in broker.state["topics"]:
        broker.create_topic("told", partitions=2)
    group = f"told-by-{'kafka-python' if make is _kafka_python else 'confluent'}"
    members = [make(broker, "first")]

    def is_stable_with(count):
        found = broker.state["groups"].get(group)
        return found is not None and found["state"] == "Stable" and len(found["members"]) == count

    try:
        while not is_stable_with(1):
            _poll(members[0])
        members.append(make(broker, "second"))
        while not is_stable_with(2):
            for each in members:
                _poll(each)
        page.go(f"groups/{group}")
        page.browser.until(
            "Its last rebalances",
            "It began because a member joined: second",
            "both members had joined",
            "from first to second: told 1",
            "It began because a member joined: first",
        )
        assert page.browser.run("return document.querySelectorAll('.timeline circle.join').length") >= 3
        members.pop().close()
        while not is_stable_with(1):
            _poll(members[0])
        page.browser.until("It began because members left: second", "from second to first: told 1")
        page.browser.picture(Path(os.environ.get("BARNABAS_PICTURES", tmp_path)) / f"{group}.png")
    finally:
        for each in members:
            each.close()
