import io

from barnabas.command.conformance_terminal import Progress, listing, terminal
from barnabas.conformance.runner import selected


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


def test_a_list_of_checks_has_their_rules():
    lines = listing(selected(["framing.oversized", "produce.codecs"])).splitlines()
    assert [line.split()[0] for line in lines] == ["CHECK", "framing.oversized", "produce.codecs"]
    assert lines[1].endswith("before that many bytes are sent.")


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
