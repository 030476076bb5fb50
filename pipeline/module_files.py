"""Where the modules beside a pipeline's file are. Needs no Spark: a file is checked before that is loaded."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

# These names always mean the real packages, whatever a folder holds under them.
TAKEN: Final = sys.stdlib_module_names | {"barnabas", "broker", "pipeline", "protocol", "storage"}


def file_of(module: str, folder: Path) -> Path | None:
    """The file of a module beside a pipeline's file, or in packages there."""
    if module.partition(".")[0] in TAKEN:
        return None
    path = folder.joinpath(*module.split("."))
    return next((each for each in (path / "__init__.py", path.with_suffix(".py")) if each.is_file()), None)
