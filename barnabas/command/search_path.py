"""What the broker's process imports, and from where."""

from __future__ import annotations

import os
import sys
from typing import Final

_OWN: Final = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def prefer_installed() -> None:
    """Move the folders of PYTHONPATH to the end of the search path, unless this package itself is in one of them.

    They hold the project of the user who starts the broker. A module there that has the name of one of the broker's own
    dependencies (`structlog.py`, say) would be imported in its place. What is installed nowhere else is still found
    there.
    """
    given = {os.path.abspath(folder) for folder in os.environ.get("PYTHONPATH", "").split(os.pathsep) if folder}
    later = [folder for folder in sys.path if folder in given - {_OWN}]
    sys.path[:] = [folder for folder in sys.path if folder not in later] + later


def leave_out_rich() -> None:
    """Import structlog as if rich were not installed.

    It would import rich wherever that is, for tracebacks that the broker never prints: a fifth of the broker's start.
    """
    if "rich" in sys.modules or "structlog" in sys.modules:
        return
    sys.modules["rich"] = None  # type: ignore[assignment]  # so that an import of it fails
    try:
        import structlog  # noqa: F401
    finally:
        del sys.modules["rich"]
