import time

import pytest

from barnabas.broker.patterns import InvalidPattern, matcher


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("orders", "orders", True),
        ("orders", "orders-1", False),  # a pattern matches the whole of it or nothing
        ("orders-.*", "orders-1", True),
        ("a|b", "b", True),
        (r"\pL+", "früh", True),
        ("", "", True),
    ],
)
def test_the_whole_text_matches_or_not(pattern, text, matches):
    assert matcher(pattern)(text) == matches


@pytest.mark.parametrize("pattern", ["(", "[a-", "(?=a)", r"\1", "a{1001}", "(a{1000}){1000}", "*"])
def test_syntax_that_re2_does_not_have_is_refused(pattern):
    with pytest.raises(InvalidPattern):
        matcher(pattern)


def test_a_malicious_pattern_takes_no_longer_than_others():
    """Python's own expressions would try each of 2**32000 ways."""
    assert not matcher("(a+)+b")("a" * 32_000)


def test_groups_of_a_pattern_take_no_time():
    """Names of all topics are matched in one turn of the loop. Looking for groups, each name takes 14 ms here."""
    matches = matcher("(" * 900 + "x" + ")" * 900)
    began = time.process_time()
    assert not any(matches("a" * 240) for _ in range(100))
    assert time.process_time() - began < 0.3


def test_the_reason_is_a_text():
    with pytest.raises(InvalidPattern, match=r"^missing \)"):
        matcher("(")
