"""Results, for the tests of reports."""

import pytest

from barnabas.conformance.runner import selected
from barnabas.conformance.verdict import Result, Step, Verdict


@pytest.fixture
def results():
    """One check that passed, one that failed with text that needs escaping, one that does not apply."""
    passed, failed, other = selected(["framing.oversized", "produce.codecs", "fetch.log-start"])
    steps = [Step("the first", "it was"), Step("a < b & c", "nothing \0 <script>")]
    return [
        Result(passed, Verdict.PASSED, "", "", 0.25, [Step("an end", "an end")]),
        Result(failed, Verdict.FAILED, "a < b & c", "nothing \0 <script>", 1.5, steps),
        Result(other, Verdict.NOT_APPLICABLE, "", "Fetch is not advertised", 0.0),
    ]
