"""The cache for what need not be downloaded or built again: `~/.cache/barnabas`, or `BARNABAS_CACHE`."""

import os
from pathlib import Path


def cache_directory() -> Path:
    own = os.environ.get("BARNABAS_CACHE")
    if own:
        return Path(own)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "barnabas"
