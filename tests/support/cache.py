"""What tests download or prepare once and then keep: in `~/.cache/barnabas`, or in BARNABAS_CACHE."""

import fcntl
import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path


def cache_directory() -> Path:
    own = os.environ.get("BARNABAS_CACHE")
    if own:
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "barnabas"


def made_once(name: str, made_from: str, make: Callable[[Path], Path]) -> Path:
    """A file or folder in the cache. The first process that wants it makes it while the others wait.

    `make` gets an empty folder and returns what it made there. The name in the cache tells what it was made from, so a
    change never meets what was made before it.
    """
    path = cache_directory() / f"{name}-{hashlib.sha256(made_from.encode()).hexdigest()[:12]}"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.with_name(f"{path.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not path.exists():
                with tempfile.TemporaryDirectory(dir=path.parent, prefix="new-") as work:
                    make(Path(work)).rename(path)
    return path
