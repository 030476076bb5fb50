"""The report for CI as JUnit XML, with a suite per room."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree

from barnabas.conformance.reports.summary import by_room, counts
from barnabas.conformance.verdict import Result, Verdict


def as_junit(results: Sequence[Result], address: str) -> str:
    root = ElementTree.Element("testsuites", {"name": f"conformance of {address}", **_totals(results)})
    for room, found in by_room(results):
        suite = ElementTree.SubElement(root, "testsuite", {"name": room.name, **_totals(found)})
        for result in found:
            _case(suite, result)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _totals(results: Sequence[Result]) -> dict[str, str]:
    found = counts(results)
    return {
        "tests": str(len(results)),
        "failures": str(found[Verdict.FAILED]),
        "errors": "0",
        "skipped": str(found[Verdict.NOT_APPLICABLE]),
        "time": f"{sum(result.seconds for result in results):.3f}",
    }


def _case(suite: ElementTree.Element, result: Result) -> None:
    check = result.check
    case = ElementTree.SubElement(
        suite, "testcase", classname=check.room, name=check.name, time=f"{result.seconds:.3f}"
    )
    if result.verdict is Verdict.FAILED:
        message = f"expected {result.expected}, saw {result.seen}"
        failure = ElementTree.SubElement(case, "failure", message=printable(message), type=check.stands_on)
        failure.text = printable(f"{check.rule}\nexpected: {result.expected}\nsaw: {result.seen}")
    elif result.verdict is Verdict.NOT_APPLICABLE:
        ElementTree.SubElement(case, "skipped", message=printable(result.seen))


def printable(text: str) -> str:
    """XML cannot hold most control characters, not even escaped, and a response may contain some."""
    return "".join(each if each >= " " or each in "\n\t" else "\N{REPLACEMENT CHARACTER}" for each in text)
