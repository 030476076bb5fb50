"""The server: sockets, handlers, coordinators, and its control interface."""

import sys

# If rich is installed, structlog imports it for its tracebacks, and a broker would start 70 ms later for it.
_rich_was_imported = "rich" in sys.modules
sys.modules.setdefault("rich", None)  # type: ignore[arg-type]
import structlog  # noqa: E402, F401

if not _rich_was_imported:
    del sys.modules["rich"]
