"""franz-go, a client library in Go: the program in tests/go, which drives it.

It needs Go; the first build downloads the modules that go.sum names, and the program goes to the cache.
"""

import shutil
import subprocess
from functools import cache
from pathlib import Path

from tests.support.cache import made_once

SOURCES = Path(__file__).parent.parent / "go"


class GoUnavailableError(Exception):
    """The program cannot be built on this machine."""


def unavailable() -> str | None:
    """Why franz-go cannot run here, or None. Builds the program first, so that no test waits for that."""
    try:
        program()
    except GoUnavailableError as error:
        return str(error)
    return None


@cache
def program() -> Path:
    sources = "".join((SOURCES / name).read_text() for name in ("go.mod", "go.sum", "main.go"))
    return made_once("franz-go-driver", sources, _build)


def _build(work: Path) -> Path:
    command = shutil.which("go")
    if command is None:
        raise GoUnavailableError("franz-go's tests need Go, and there is no go command")
    made = work / "driver"
    done = subprocess.run(
        [command, "build", "-o", str(made), "."], cwd=SOURCES, capture_output=True, text=True, timeout=550
    )
    if done.returncode != 0:
        raise GoUnavailableError(f"go build failed: {done.stderr[-500:]}")
    return made
