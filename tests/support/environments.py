"""Virtual environments that are created quickly: with everything that is installed here except Barnabas."""

from __future__ import annotations

import sys
import venv
from pathlib import Path


def environment_without_barnabas(folder: Path) -> Path:
    """Make one; returns its python."""
    venv.create(folder, with_pip=False)
    # A folder that a .pth file names is searched, but .pth files in it, such as that of an editable install, are not
    # read.
    installed = [each for each in sys.path if each.endswith(("site-packages", "dist-packages"))]
    (site_packages(folder) / "installed.pth").write_text("\n".join(installed))
    return folder / "bin" / "python"


def site_packages(folder: Path) -> Path:
    (found,) = folder.glob("lib/python*/site-packages")
    return found
