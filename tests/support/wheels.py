"""Inspects built wheels and tries each of them in an empty environment; `make wheel` does this with what it builds.

python -m tests.support.wheels dist/*.whl
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]

TESTS = """
from barnabas import Barnabas

def test_the_fixture(kafka_broker, kafka_topic):
    assert kafka_topic in kafka_broker.state["topics"]

def test_the_handle():
    with Barnabas(num_partitions=3) as broker:
        assert broker.state["topics"] == {}
"""


def contents(wheel: Path) -> list[str]:
    """The files in a wheel, without those that describe it."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    return sorted(name for name in names if not name.split("/")[0].endswith(".dist-info"))


def package_files() -> list[str]:
    """The files that a pure wheel consists of, as they are named in it."""
    found = []
    for folder, folders, names in os.walk(ROOT / "barnabas", followlinks=True):
        folders[:] = [name for name in folders if name != "__pycache__"]
        found += [os.path.relpath(os.path.join(folder, name), ROOT) for name in names if not name.endswith(".md")]
    return sorted(found)


def check_contents(wheel: Path) -> None:
    names = contents(wheel)
    compiled = [name for name in names if name.endswith(".so")]
    assert bool(compiled) == (not wheel.stem.endswith("-none-any")), compiled
    assert all(name.startswith("barnabas/") for name in compiled), compiled
    differences = set(names) ^ {*package_files(), *compiled}
    assert not differences, f"not the same in {wheel.name} and here: {sorted(differences)}"
    assert len(names) == len(set(names)), "a file is in there twice"


def try_out(wheel: Path, folder: Path) -> None:
    """Install a wheel in an environment of its own, and use the command, the handle and the pytest plugin."""
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
    scripts = folder / "venv" / "bin"
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYTEST", "BARNABAS"))
    }

    def run(*command: str, given: str = "") -> str:
        done = subprocess.run(
            [scripts / command[0], *command[1:]],
            cwd=folder,
            env=environment,
            input=given,
            stdout=subprocess.PIPE,
            text=True,
            timeout=600,
        )
        assert done.returncode == 0, f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}"
        return done.stdout

    run("python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(wheel.absolute()), "pytest")
    version = f"barnabas {wheel.name.split('-')[1]}\n"
    assert run("barnabas", "--version") == run("python", "-m", "barnabas", "--version") == version
    serve = [scripts / "barnabas", "serve", "--listen", "127.0.0.1:0", "--data", "data"]
    with subprocess.Popen(serve, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True) as broker:
        try:
            assert broker.stdout is not None
            address = next(line.split()[-1] for line in broker.stdout if "ready on" in line)
            run("barnabas", "produce", "greetings", "--bootstrap", address, given="hello\nworld\n")
            printed = run("barnabas", "consume", "greetings", "--no-follow", "--bootstrap", address)
            assert printed == "hello\nworld\n", printed
        finally:
            broker.terminate()
    assert broker.returncode == 0, broker.returncode
    (folder / "test_it.py").write_text(TESTS)
    assert "2 passed" in run("pytest", "-q", "test_it.py")


def main(wheels: Sequence[str]) -> None:
    for name in wheels:
        wheel = Path(name)
        check_contents(wheel)
        with tempfile.TemporaryDirectory(prefix="barnabas-wheel-") as folder:
            try_out(wheel, Path(folder))
        print(f"{wheel.name}: its {len(contents(wheel))} files are right, and it works in an empty environment")


if __name__ == "__main__":
    main(sys.argv[1:])
