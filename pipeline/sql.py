"""Checks a query without Spark: are quotes and parentheses balanced, and which views does it read?

Spark's own parser has the last word before anything runs. This finds common mistakes before a JVM starts, and never
rejects what Spark would accept.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_TOKEN: Final = re.compile(
    r"""(?P<space>\s+|--[^\n]*|/\*.*?\*/)"""
    r"""|(?P<string>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.)*")"""
    r"""|(?P<quoted>`(?:[^`]|``)*`)"""
    r"""|(?P<word>[A-Za-z_][A-Za-z_0-9]*)"""
    r"""|(?P<number>\d[\w.]*)"""
    r"""|(?P<open>['"`]|/\*)"""
    r"""|(?P<other>.)""",
    re.DOTALL | re.VERBOSE,
)
_OPENERS: Final = {")": "(", "]": "[", "}": "{"}
_BEGINNINGS: Final = {"SELECT", "WITH", "FROM", "VALUES", "TABLE", "("}
# FROM also occurs inside calls such as extract(year FROM t) and trim(x FROM y).
_CALLS_WITH_FROM: Final = {"EXTRACT", "TRIM", "SUBSTRING", "SUBSTR", "OVERLAY", "DISTINCT"}


_ENDS_OF_LISTS: Final = {
    "WHERE",
    "GROUP",
    "HAVING",
    "ORDER",
    "SORT",
    "CLUSTER",
    "DISTRIBUTE",
    "UNION",
    "INTERSECT",
    "EXCEPT",
    "MINUS",
    "SELECT",
    "WINDOW",
    "LIMIT",
    "VIEW",
}


@dataclass(frozen=True, slots=True)
class Token:
    text: str
    line: int  # from 0, within the query
    kind: str


@dataclass(frozen=True, slots=True)
class SqlProblem:
    message: str
    line: int


def problem_of(sql: str) -> SqlProblem | None:
    """An unclosed quote or parenthesis, or a text that is not a query."""
    tokens = list(_tokens(sql))
    if not tokens:
        return SqlProblem("the query is empty", 0)
    if tokens[0].text.upper() not in _BEGINNINGS:
        return SqlProblem(f"a query begins with SELECT or WITH, not with {tokens[0].text!r}", tokens[0].line)
    opened: list[Token] = []
    for token in tokens:
        if token.kind == "open":
            what = "comment" if token.text == "/*" else "quotation mark"
            return SqlProblem(f"the {what} {token.text} is not closed", token.line)
        if token.text in "([{":
            opened.append(token)
        elif token.text in _OPENERS and (not opened or opened.pop().text != _OPENERS[token.text]):
            return SqlProblem(f"the {token.text} closes nothing", token.line)
    if opened:
        return SqlProblem(f"the {opened[-1].text} is not closed", opened[-1].line)
    return None


def references(sql: str) -> list[Token]:
    """The names in the places of views (after FROM, JOIN and commas between them), without those that WITH defines."""
    tokens = list(_tokens(sql))
    own = {
        _name(tokens[i]).lower()
        for i in range(len(tokens) - 2)
        if tokens[i + 1].text.upper() == "AS" and tokens[i + 2].text == "(" and tokens[i].kind in ("word", "quoted")
    }
    return [token for token in _table_tokens(tokens) if _name(token).lower() not in own]


def _table_tokens(tokens: list[Token]) -> Iterator[Token]:
    calls: list[str] = []  # for each open parenthesis, the word before it
    listing: list[bool] = [False]  # for each depth: between FROM and what ends its list of views
    expecting = False
    for i, token in enumerate(tokens):
        word = token.text.upper() if token.kind == "word" else ""
        after = tokens[i + 1].text if i + 1 < len(tokens) else ""
        if token.text == "(":
            calls.append(tokens[i - 1].text.upper() if i else "")
            listing.append(False)
            expecting = False
        elif token.text == ")":
            if calls:
                calls.pop(), listing.pop()
            expecting = False
        elif word == "FROM":
            inside_call = bool(calls) and calls[-1] in _CALLS_WITH_FROM
            distinct = i > 0 and tokens[i - 1].text.upper() == "DISTINCT"  # IS DISTINCT FROM
            expecting = listing[-1] = not inside_call and not distinct
        elif word == "JOIN":
            expecting = listing[-1] = True
        elif word in _ENDS_OF_LISTS:
            expecting = listing[-1] = False
        elif word in ("ON", "USING"):
            expecting = False
        elif token.text == "," and listing[-1]:
            expecting = True
        elif expecting:
            expecting = False
            # A name with dots is a table in a catalog, one with parentheses a function: both are left to Spark.
            if (
                token.kind in ("word", "quoted")
                and after not in (".", "(")
                and word not in ("LATERAL", "VALUES", "STREAM")
            ):
                yield token


def view_name(token: Token) -> str:
    return _name(token)


def _name(token: Token) -> str:
    return token.text[1:-1].replace("``", "`") if token.kind == "quoted" else token.text


def _tokens(sql: str) -> Iterator[Token]:
    line = 0
    for match in _TOKEN.finditer(sql):
        kind = match.lastgroup or ""
        if kind != "space":
            yield Token(match[0], line, kind)
        line += match[0].count("\n")
