"""The report as a self-contained HTML page: one file, no script, fit for printing, a narrow screen and dark mode.

The filters are check boxes, and the style sheet hides what they leave out.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Final

from barnabas.conformance.reports.summary import by_room, counts, in_words
from barnabas.conformance.verdict import Result, Verdict

_MARKS: Final = {Verdict.PASSED: ("ok", "✓"), Verdict.FAILED: ("bad", "✗"), Verdict.NOT_APPLICABLE: ("na", "·")}
_ORDER: Final = (Verdict.FAILED, Verdict.PASSED, Verdict.NOT_APPLICABLE)

_STYLE: Final = """
:root { color-scheme: light dark; --line: #8884; --soft: #8881; --bad: #b3261e; --ok: #1c7a46; --na: #6b6b6b; }
@media (prefers-color-scheme: dark) { :root { --bad: #ff9d94; --ok: #7fd6a0; --na: #a0a0a0; } }
* { box-sizing: border-box; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 64rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin-bottom: 0; overflow-wrap: anywhere; } h2 { font-size: 1.15rem; margin: 2.2rem 0 .4rem; }
h2 small { font-weight: normal; color: var(--na); }
p.lead { margin: .2rem 0; } p.about { margin: 0; color: var(--na); font-size: .9rem; }
nav { columns: 14rem; margin: 1rem 0; } nav a { display: block; color: inherit; }
fieldset { border: 1px solid var(--line); border-radius: .5rem; padding: .4rem .9rem; display: flex; flex-wrap: wrap;
  gap: .3rem 1.4rem; margin: 1rem 0; }
legend { padding: 0 .3rem; color: var(--na); } label { cursor: pointer; }
input { width: 1.1rem; height: 1.1rem; vertical-align: -.15rem; }
body:has(#show-ok:not(:checked)) details.ok, body:has(#show-bad:not(:checked)) details.bad,
body:has(#show-na:not(:checked)) details.na { display: none; }
details { border-top: 1px solid var(--line); }
details:last-of-type { border-bottom: 1px solid var(--line); }
summary { cursor: pointer; list-style: none; display: grid; grid-template-columns: 1rem 1.3rem 1fr minmax(0, 14rem);
  gap: .4rem; padding: .35rem .3rem; border-radius: .3rem; }
summary:hover { background: var(--soft); }
summary::-webkit-details-marker { display: none; }
summary::before { content: "▸"; color: var(--na); } details[open] > summary::before { content: "▾"; }
summary code { font-size: .85rem; color: var(--na); overflow-wrap: anywhere; }
.basis { color: var(--na); font-size: .85rem; text-align: right; }
.ok > summary > b { color: var(--ok); }
.bad > summary > b { color: var(--bad); } .na > summary > b { color: var(--na); }
.na > summary { color: var(--na); }
.steps { overflow-x: auto; margin: .4rem 0 .6rem 2.7rem; }
table { border-collapse: collapse; font-size: .88rem; }
td, th { text-align: left; vertical-align: top; padding: .1rem .9rem .1rem 0; overflow-wrap: anywhere; }
th { font-weight: 600; } tr.wrong td { color: var(--bad); } p.why { margin: .3rem 0 .5rem 2.7rem; font-size: .9rem; }
@media (max-width: 40rem) {
  body { margin: 1rem auto; padding: 0 .7rem; }
  summary { grid-template-columns: 1rem 1.3rem 1fr; } .basis { grid-column: 3; text-align: left; }
  .steps, p.why { margin-left: .3rem; }
}
@media print { fieldset, nav { display: none; } }
"""


def as_html(results: Sequence[Result], address: str, about: Sequence[str] = ()) -> str:
    """`about` says when this was, and what was checked with what."""
    rooms = by_room(results)
    failures = [result for result in results if result.verdict is Verdict.FAILED]
    title = f"Protocol conformance of {escape(address)}"
    links = "".join(f'<a href="#{room.name}">{escape(room.title)} {_short(found)}</a>' for room, found in rooms)
    parts = [
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>',
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{_STYLE}</style></head><body>',
        f'<h1>{title}</h1>\n<p class="lead">{len(results)} checks: {in_words(results)}.</p>',
        f'<p class="about">{escape(". ".join(about))}</p>' if about else "",
        f"<fieldset><legend>Show</legend>{_filters(results)}</fieldset>\n<nav>{links}</nav>",
    ]
    if failures:
        parts.append("<h2>What failed</h2>")
        parts += [_check(result, opened=True) for result in failures]
    for room, found in rooms:
        parts.append(f'<h2 id="{room.name}">{escape(room.title)} <small>{in_words(found)}</small></h2>')
        parts += [_check(result) for verdict in _ORDER for result in found if result.verdict is verdict]
    parts.append("</body></html>")
    return "\n".join(parts) + "\n"


def _filters(results: Sequence[Result]) -> str:
    found = counts(results)
    return "".join(
        f'<label><input type="checkbox" id="show-{_MARKS[each][0]}" checked> {each.value} ({found[each]})</label>'
        for each in _ORDER
    )


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
    return f'<div class="steps"><table><tr><th>expected</th><th>saw</th></tr>{"".join(rows)}</table></div>'
