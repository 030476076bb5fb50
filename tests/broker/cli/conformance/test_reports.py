import io
import json
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

from broker.cli.conformance.reports import Progress, as_html, as_json, as_junit, listing, terminal
from broker.cli.conformance.runner import selected
from broker.cli.conformance.verdict import Result, Step, Verdict

ADDRESS = "127.0.0.1:9092"


@pytest.fixture
def results():
    """One check that passed, one that failed with words that need escaping, one that does not apply."""
    passed, failed, other = selected(["framing.oversized", "produce.codecs", "fetch.log-start"])
    steps = [Step("the first", "it was"), Step("a < b & c", "nothing \0 <script>")]
    return [
        Result(passed, Verdict.PASSED, "", "", 0.25, [Step("an end", "an end")]),
        Result(failed, Verdict.FAILED, "a < b & c", "nothing \0 <script>", 1.5, steps),
        Result(other, Verdict.NOT_APPLICABLE, "", "Fetch is not advertised", 0.0),
    ]


def test_the_terminal_shows_failures_in_full_and_a_line_for_every_room(results):
    text = terminal(results)
    assert "FAILED  produce.codecs" in text
    assert "  expected  a < b & c\n  saw       nothing \0 <script>" in text
    assert "framing.oversized" not in text
    assert text.splitlines()[-1] == "3 checks: 1 passed, 1 failed, 1 not applicable"


def test_a_verbose_terminal_shows_every_check(results):
    text = terminal(results, verbose=True)
    assert [line.split()[:2] for line in text.splitlines()[1:4]] == [
        ["ok", "framing.oversized"],
        ["FAILED", "produce.codecs"],
        ["n/a", "fetch.log-start"],
    ]
    assert "Fetch is not advertised" in text


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

    VOID = ("meta", "br")

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


def test_the_page_stands_for_itself_with_failures_first(results):
    text = as_html(results, ADDRESS)
    page = Page()
    page.feed(text)
    assert page.open == []
    assert page.links == []
    assert page.order[:2] == ["What failed", "bad"]
    assert page.order[2:] == [
        "Frames, headers and the order of answers",
        "ok",
        "Records written",
        "bad",
        "Records read",
        "na",
    ]
    assert "<script>" not in text


def test_a_list_of_checks_has_their_rules():
    lines = listing(selected(["framing.oversized", "produce.codecs"])).splitlines()
    assert [line.split()[0] for line in lines] == ["CHECK", "framing.oversized", "produce.codecs"]
    assert lines[1].endswith("before so many bytes are sent.")


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_is_for_people_only(results):
    seen, unseen = Terminal(), io.StringIO()
    for stream in (seen, unseen):
        progress = Progress(3, stream)
        for result in results[:2]:
            progress.done(result)
        progress.clear()
    assert "2 of 3, 1 failed: produce.codecs" in seen.getvalue()
    assert unseen.getvalue() == ""
