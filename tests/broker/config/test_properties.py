import re
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.broker.config.errors import ConfigError
from barnabas.broker.config.properties import Property, decode_properties, parse_properties, read_properties


def parse(text: str) -> list[tuple[str, str]]:
    return [(name, value) for name, value, _ in parse_properties(text, "server.properties")]


@pytest.mark.parametrize("line", ["a=1", "a:1", "a 1", "a = 1", "a\t:\f1", "   a=1", "a  1"])
def test_separators(line):
    assert parse(line) == [("a", "1")]


def test_only_the_first_separator_separates():
    assert parse("listeners=PLAINTEXT://:9092") == [("listeners", "PLAINTEXT://:9092")]
    assert parse("a = = b") == [("a", "= b")]
    assert parse("a b = c") == [("a", "b = c")]


def test_comments_and_blank_lines():
    assert parse("# a=1\n! b=2\n\n   \t\n  # c=3\nd=4") == [("d", "4")]


def test_a_name_alone_has_an_empty_value():
    assert parse("a\nb=\nc:") == [("a", ""), ("b", ""), ("c", "")]


def test_continued_lines():
    assert parse("a=1,\\\n    2,\\\n\t3\nb=4") == [("a", "1,2,3"), ("b", "4")]


def test_a_comment_is_not_continued_and_does_not_interrupt():
    assert parse("# one \\\na=1") == [("a", "1")]
    assert parse("a=1,\\\n# 2") == [("a", "1,# 2")]


def test_a_backslash_alone_continues_nothing():
    assert parse("\\\n# a=1\n\\\n\nb=2") == [("b", "2")]


def test_an_escaped_backslash_does_not_continue():
    assert parse("a=C:\\\\\nb=1") == [("a", "C:\\"), ("b", "1")]


def test_a_continued_last_line():
    assert parse("a=1\\") == [("a", "1")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"a=\t\n\r\f", ("a", "\t\n\r\f")),
        (r"a=\u0041\u00e9", ("a", "Aé")),
        (r"a=\ud83d\ude00", ("a", "😀")),
        (r"a\=b=c", ("a=b", "c")),
        (r"a\:b c", ("a:b", "c")),
        (r"a\ b=c", ("a b", "c")),
        (r"a=\q\"\#", ("a", 'q"#')),
    ],
)
def test_escapes(text, expected):
    assert parse(text) == [expected]


def test_line_numbers_count_natural_lines():
    text = "# first\na=1\\\n2\n\nb=3\r\nc=4"
    assert parse_properties(text, "x") == [Property("a", "12", 2), Property("b", "3", 5), Property("c", "4", 6)]


def test_every_malformed_escape_is_reported_with_its_line():
    with pytest.raises(ConfigError) as caught:
        parse_properties("a=\\u12\nb=2\nc\\uxyzw=3\nd=\\ud83d", "server.properties")
    assert caught.value.problems == (
        r"server.properties:1: \u must be followed by four hexadecimal digits",
        r"server.properties:3: \u must be followed by four hexadecimal digits",
        r"server.properties:4: \u gives only half of a surrogate pair",
    )


def test_a_name_may_occur_twice():
    assert parse("a=1\na=2") == [("a", "1"), ("a", "2")]


def test_utf_8_or_else_latin_1():
    assert decode_properties("a=é".encode()) == "a=é"
    assert decode_properties("a=é".encode("latin-1")) == "a=é"
    assert decode_properties("\ufeffa=1".encode()) == "a=1"


def test_a_file_that_is_not_there(tmp_path):
    path = str(tmp_path / "missing.properties")
    with pytest.raises(ConfigError) as caught:
        read_properties(path)
    assert caught.value.problems == (f"{path}: No such file or directory",)


TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


def escape(text: str) -> str:
    """Every character as Java would escape it, in UTF-16."""
    return re.sub("....", r"\\u\g<0>", text.encode("utf-16-be").hex())


@given(st.dictionaries(TEXTS.filter(bool), TEXTS))
def test_what_is_escaped_comes_back(properties):
    text = "\n".join(f"{escape(name)}={escape(value)}" for name, value in properties.items())
    assert parse(text) == list(properties.items())


@given(st.text())
def test_any_text_is_parsed_or_refused(text):
    with suppress(ConfigError):
        parse(text)
