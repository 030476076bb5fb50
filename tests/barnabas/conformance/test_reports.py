import json
from html.parser import HTMLParser
from xml.etree import ElementTree

from barnabas.conformance.reports import as_html, as_json, as_junit

ADDRESS = "127.0.0.1:9092"


def test_json_has_everything(results):
    document = json.loads(as_json(results, ADDRESS))
    assert document["bootstrap"] == ADDRESS
    assert document["summary"] == {"passed": 1, "failed": 1, "not applicable": 1}
    assert [check["verdict"] for check in document["checks"]] == ["passed", "failed", "not applicable"]
    failed = document["checks"][1]
    assert (failed["expected"], failed["seen"], failed["seconds"]) == ("a < b & c", "nothing \0 <script>", 1.5)
    assert failed["needs"] == {"Produce": [7, None], "Fetch": [10, None]}
    assert len(failed["steps"]) == 2


def test_junit_counts_failures_and_skips(results):
    root = ElementTree.fromstring(as_junit(results, ADDRESS))
    assert {name: root.get(name) for name in ("tests", "failures", "errors", "skipped")} == {
        "tests": "3",
        "failures": "1",
        "errors": "0",
        "skipped": "1",
    }
    assert [suite.get("name") for suite in root] == ["framing", "produce", "fetch"]
    assert root.find("testsuite/testcase/failure").get("message").startswith("expected a < b & c, saw nothing")
    assert root.find("testsuite/testcase/skipped").get("message") == "Fetch is not advertised"


class Page(HTMLParser):
    """Which tags are open, and in which order headings and checks come."""

    VOID = ("meta", "br", "input")

    def __init__(self):
        super().__init__()
        self.open = []
        self.order = []
        self.links = []

    def handle_starttag(self, tag, attributes):
        if tag not in self.VOID:
            self.open.append(tag)
        if tag in ("link", "script", "img"):
            self.links.append(tag)
        if tag == "details":
            self.order.append(dict(attributes)["class"])

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] == "h2":
            self.order.append(data.strip())


def test_the_page_is_self_contained_with_failures_first(results):
    text = as_html(results, ADDRESS)
    page = Page()
    page.feed(text)
    assert page.open == []
    assert page.links == []
    assert page.order[:2] == ["What failed", "bad"]
    assert page.order[2:] == [
        "Frames, headers and the order of responses",
        "ok",
        "Records written",
        "bad",
        "Records read",
        "na",
    ]
    assert "<script>" not in text


def test_the_page_says_when_it_was_and_can_leave_things_out(results):
    text = as_html(results, ADDRESS, ["2026-01-01 00:00 UTC", "Checked with <barnabas>"])
    assert "2026-01-01 00:00 UTC. Checked with &lt;barnabas&gt;" in text
    for kind, words in (("ok", "passed (1)"), ("bad", "failed (1)"), ("na", "not applicable (1)")):
        assert f'<input type="checkbox" id="show-{kind}" checked> {words}' in text
