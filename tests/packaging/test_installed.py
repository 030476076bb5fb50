"""The wheel beside a stranger's project that has packages of its own called broker, pipeline, protocol and storage."""

import importlib.metadata
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.support.environments import environment_without_barnabas, site_packages
from tests.support.wheels import ROOT, check_contents, contents

NAMES = ("broker", "pipeline", "protocol", "storage")

TESTS = """
import broker, pipeline, protocol, storage

def test_the_packages_are_this_projects_own():
    assert {each.OWNER for each in (broker, pipeline, protocol, storage)} == {"the stranger"}

def test_the_broker_is_barnabas(kafka_broker, kafka_topic):
    assert kafka_topic in kafka_broker.state["topics"]
"""

PROJECT = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "stranger"
version = "1.0"

[tool.hatch.build.targets.wheel]
packages = ["src/broker", "src/pipeline", "src/protocol", "src/storage"]
"""


def build(source: Path, folder: Path, *options: str) -> Path:
    """Build with the tools that are installed here; returns the wheel."""
    command = [sys.executable, "-m", "build", "--quiet", "--no-isolation", "--outdir", folder, *options, source]
    environment = {name: value for name, value in os.environ.items() if name != "BARNABAS_COMPILE"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = folder.glob("*.whl")
    return wheel


class Environment:
    """A virtual environment with our wheel in it. Other packages that are installed here can be imported there, too."""

    def __init__(self, folder: Path, wheel: Path) -> None:
        self.python = environment_without_barnabas(folder)
        self.scripts = folder / "bin"
        self.site = site_packages(folder)
        pytest_script = self.scripts / "pytest"
        pytest_script.write_text(f"#!{self.python}\nimport sys, pytest\nsys.exit(pytest.console_main())\n")
        pytest_script.chmod(0o755)
        self.install(wheel)

    def install(self, *what: str | Path) -> None:
        pip = [sys.executable, "-m", "pip", "--python", self.python, "--disable-pip-version-check", "--quiet"]
        install = ["install", "--no-index", "--no-deps", "--no-build-isolation", "--no-compile"]
        done = subprocess.run([*pip, *install, *what], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr

    def files(self, distribution: str) -> set[str]:
        (found,) = importlib.metadata.distributions(name=distribution, path=[str(self.site)])
        return {str(file) for file in found.files or ()}

    def run(self, folder: Path, script: str, *arguments: str, **variables: str) -> tuple[int, str]:
        """Run a script in a folder; returns its exit code and everything that it printed."""
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYTEST", "BARNABAS"))
        }
        done = subprocess.run(
            [self.scripts / script, *arguments],
            cwd=folder,
            env={**environment, **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
        )
        return done.returncode, done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the sdist, and the wheel built from it."""
    folder = tmp_path_factory.mktemp("dist")
    build(ROOT, folder)
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    (wheel,) = built.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return Environment(tmp_path_factory.mktemp("installed") / "venv", wheel)


def project(folder: Path, layout: str) -> Path:
    packages = folder if layout == "flat" else folder / "src"
    for name in NAMES:
        (packages / name).mkdir(parents=True)
        (packages / name / "__init__.py").write_text('OWNER = "the stranger"\n')
    (folder / "tests").mkdir()
    (folder / "tests" / "test_it.py").write_text(TESTS)
    if layout == "flat":
        (folder / "conftest.py").touch()  # this is how pytest finds the packages
    else:
        (folder / "pyproject.toml").write_text(PROJECT)
    return folder


def by_pytest(environment: Environment, folder: Path) -> tuple[int, str]:
    return environment.run(folder, "pytest", "-q", "tests")


def by_python(environment: Environment, folder: Path) -> tuple[int, str]:
    return environment.run(folder, "python", "-m", "pytest", "-q", "tests")


WAYS = [by_pytest, by_python]


# --- what is in it ---


def test_a_wheel_holds_the_package_and_nothing_else(wheel: Path, tmp_path: Path) -> None:
    check_contents(wheel)
    assert contents(build(ROOT, tmp_path, "--wheel")) == contents(wheel)  # without an sdist in between


def test_sdist_and_wheel_have_the_license(built: Path, wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        assert [name for name in archive.namelist() if name.endswith(".dist-info/licenses/LICENSE")]
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        (root,) = {name.split("/")[0] for name in archive.getnames()}
        assert {f"{root}/LICENSE", f"{root}/README.md", f"{root}/broker/broker.py"} <= set(archive.getnames())


# --- beside other projects ---


@pytest.mark.parametrize("name", [*NAMES, "tests", "benchmarks", "hatch_build"])
def test_what_is_not_called_barnabas_is_not_there(environment: Environment, tmp_path: Path, name: str) -> None:
    code, printed = environment.run(tmp_path, "python", "-c", f"import {name}")
    assert (code, printed.splitlines()[-1]) == (1, f"ModuleNotFoundError: No module named '{name}'")


def test_a_flat_project(environment: Environment, tmp_path: Path) -> None:
    folder = project(tmp_path / "project", "flat")
    for run in WAYS:
        code, printed = run(environment, folder)
        assert (code, "2 passed" in printed) == (0, True), printed


@pytest.mark.parametrize("options", [["--editable"], []], ids=["editable", "regular"])
def test_a_project_in_src_that_is_installed(wheel: Path, tmp_path: Path, options: list[str]) -> None:
    environment = Environment(tmp_path / "venv", wheel)
    folder = project(tmp_path / "project", "src")
    environment.install(*options, folder)
    for run in WAYS:
        code, printed = run(environment, folder)
        assert (code, "2 passed" in printed) == (0, True), printed
    assert not environment.files("barnabas") & environment.files("stranger")


@pytest.mark.parametrize("command", [("barnabas",), ("python", "-m", "barnabas")], ids=" ".join)
def test_the_command_in_such_a_project(environment: Environment, tmp_path: Path, command: tuple[str, ...]) -> None:
    folder = project(tmp_path / "project", "flat")
    for variables in ({}, {"PYTHONPATH": "."}):
        code, printed = environment.run(folder, *command, "--version", **variables)
        assert (code, printed) == (0, f"barnabas {importlib.metadata.version('barnabas')}\n")
