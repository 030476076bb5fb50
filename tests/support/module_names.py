"""Modules of this repository that are loaded under more than one name."""

from __future__ import annotations

import os
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def loaded_twice() -> dict[str, list[str]]:
    """The files that are more than one module, and the names of these. A link counts as the file it leads to.

    Two names of one module, as `multiprocessing` gives to `__main__`, are not two modules.
    """
    names: dict[str, list[str]] = defaultdict(list)
    for module, name in {id(module): (module, name) for name, module in list(sys.modules.items())}.values():
        file = getattr(module, "__file__", None)
        if file:
            names[os.path.realpath(file)].append(name)
    return {file: found for file, found in names.items() if len(found) > 1 and _is_ours(Path(file))}


def _is_ours(file: Path) -> bool:
    return file.is_relative_to(ROOT) and "site-packages" not in file.parts
