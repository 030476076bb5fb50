"""axe-core, which finds what a page makes hard for people with a screen reader or bad eyes. It comes from npm, once."""

from __future__ import annotations

import shutil
import subprocess
import tarfile
from pathlib import Path

from tests.support.browser import Browser
from tests.support.cache import made_once

_VERSION = "axe-core@4.10.3"
# What WCAG 2.2 asks for at the levels A and AA, and what axe calls best practice.
_TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]

MISSING = None if shutil.which("npm") else "axe comes from npm, which is not here: apt-get install npm"


class AxeUnavailable(Exception):
    """npm could not fetch it."""


def script() -> str:
    return (made_once("axe", _VERSION, _fetch) / "axe.min.js").read_text()


def _fetch(folder: Path) -> Path:
    command = ["npm", "pack", _VERSION, "--silent", "--pack-destination", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=300)
    if done.returncode != 0:
        raise AxeUnavailable(done.stderr[-500:])
    (archive,) = folder.glob("*.tgz")
    with tarfile.open(archive) as files:
        files.extractall(folder, filter="data")
    return folder / "package"


def violations(browser: Browser) -> list[str]:
    """What axe finds on the page as it is now, a line each."""
    browser.run(script() + "\n;window.axe = axe;")
    found = browser.run_async(
        "const done = arguments[arguments.length - 1];"
        "axe.run(document, {runOnly: arguments[0], resultTypes: ['violations']})"
        ".then((found) => done(found.violations), (error) => done([{id: String(error), nodes: []}]))",
        _TAGS,
    )
    return [
        f"{each['id']}: {node.get('target')} {node.get('html', '')[:200]}"
        for each in found
        for node in each["nodes"] or [{}]
    ]
