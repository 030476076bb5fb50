"""The report as a self-contained HTML page: one file, no script, fit for printing and for dark mode."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Final

from barnabas.conformance.reports.summary import by_room, counts, in_words
from barnabas.conformance.verdict import Result, Verdict

_MARKS: Final = {Verdict.PASSED: ("ok", "✓"), Verdict.FAILED: ("bad", "✗"), Verdict.NOT_APPLICABLE: ("na", "·")}
_ORDER: Final = (Verdict.FAILED, Verdict.PASSED, Verdict.NOT_APPLICABLE)

_STYLE: Final = """
:root { color-scheme: light dark; --line: #8884; --bad: #c22; --ok: #282; --na: #888; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 64rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin-bottom: 0; } h2 { font-size: 1.15rem; margin: 2.2rem 0 .4rem; }
h2 small { font-weight: normal; color: var(--na); }
p.lead { margin-top: .2rem; } nav { columns: 14rem; margin: 1rem 0; } nav a { display: block; }
details { border-top: 1px solid var(--line); padding: .35rem 0; }
details:last-of-type { border-bottom: 1px solid var(--line); }
summary { cursor: pointer; list-style: none; display: grid; grid-template-columns: 1.4rem 1fr auto; gap: .4rem; }
summary::-webkit-details-marker { display: none; }
summary code { font-size: .85rem; color: var(--na); } .basis { color: var(--na); font-size: .85rem; text-align: right; }
.ok > summary > b { color: var(--ok); }
.bad > summary > b { color: var(--bad); } .na > summary > b { color: var(--na); }
.na > summary { color: var(--na); }
table { border-collapse: collapse; margin: .4rem 0 .6rem 1.8rem; font-size: .88rem; }
td, th { text-align: left; vertical-align: top; padding: .1rem .9rem .1rem 0; overflow-wrap: anywhere; }
th { font-weight: 600; } tr.wrong td { color: var(--bad); } p.why { margin: .3rem 0 .5rem 1.8rem; font-size: .9rem; }
"""


def as_html(results: Sequence[Result], address: str) -> str:
    rooms = by_room(results)
    failures = [result for result in results if result.verdict is Verdict.FAILED]
    title = f"Protocol conformance of {escape(address)}"
    links = "".join(f'<a href="#{room.name}">{escape(room.title)} {_short(found)}</a>' for room, found in rooms)
    parts = [
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>',
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{_STYLE}</style></head><body>',
        f'<h1>{title}</h1>\n<p class="lead">{len(results)} checks: {in_words(results)}.</p>\n<nav>{links}</nav>',
    ]
    if failures:
        parts.append("<h2>What failed</h2>")
        parts += [_check(result, opened=True) for result in failures]
    for room, found in rooms:
        parts.append(f'<h2 id="{room.name}">{escape(room.title)} <small>{in_words(found)}</small></h2>')
        parts += [_check(result) for verdict in _ORDER for result in found if result.verdict is verdict]
    parts.append("</body></html>")
    return "\n".join(parts) + "\n"


def _short(results: Sequence[Result]) -> str:
    failed = counts(results)[Verdict.FAILED]
    return f"({failed} failed)" if failed else ""


def _check(result: Result, *, opened: bool = False) -> str:
    kind, mark = _MARKS[result.verdict]
    check = result.check
    head = (
        f"<b>{mark}</b><span>{escape(check.rule)}<br><code>{escape(check.name)}</code></span>"
        f'<span class="basis">{escape(check.stands_on)}</span>'
    )
    return f'<details class="{kind}"{" open" if opened else ""}><summary>{head}</summary>{_body(result)}</details>'


def _body(result: Result) -> str:
    if result.verdict is Verdict.NOT_APPLICABLE:
        return f'<p class="why">Not applicable: {escape(result.seen)}.</p>'
    rows = []
    for number, step in enumerate(result.steps, start=1):
        wrong = result.verdict is Verdict.FAILED and number == len(result.steps)
        row = f"<td>{escape(step.expected)}</td><td>{escape(step.seen)}</td>"
        rows.append(f'<tr class="wrong">{row}</tr>' if wrong else f"<tr>{row}</tr>")
    return f"<table><tr><th>expected</th><th>saw</th></tr>{''.join(rows)}</table>"
