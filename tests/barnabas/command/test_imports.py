"""The commands that talk to a broker know only the protocol, and do not slow down the start of a broker."""

import subprocess
import sys
import textwrap

import pytest


def imported_by(module):
    program = f"import sys, {module}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.mark.parametrize(
    "command", ["topics", "groups", "configs", "users", "acls", "cluster", "produce", "consume", "conformance"]
)
def test_a_client_imports_nothing_of_a_broker(command):
    modules = imported_by(f"barnabas.command.{command}")
    assert not [name for name in modules if name.startswith("barnabas.storage")]
    assert not [name for name in modules if name.startswith("barnabas.broker")]


@pytest.mark.parametrize("module", ["barnabas.command", "barnabas.command.serve"])
def test_a_broker_imports_nothing_of_a_client(module):
    assert not [name for name in imported_by(module) if name.startswith("barnabas.client")]


def test_a_broker_starts_without_rich_which_others_may_still_import():
    pytest.importorskip("rich")
    program = """
        import contextlib, sys
        from barnabas.command import main
        with contextlib.suppress(SystemExit):
            main(["serve", "--version-that-is-none"])
        print(*sys.modules)
        import rich
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=True)
    modules = done.stdout.split()
    assert "structlog" in modules
    assert "rich" not in modules


def test_a_broker_without_a_console_does_not_import_it():
    modules = imported_by("barnabas.command.serve")
    assert not [
        name for name in modules if name.startswith(("aiohttp", "prometheus_client", "barnabas.broker.console"))
    ]
    assert not [name for name in modules if name.startswith(("barnabas.broker.metrics", "barnabas.broker.testing"))]


def test_a_console_without_its_packages_says_what_to_install(tmp_path):
    program = f"""
        import sys
        sys.modules["aiohttp"] = None
        from barnabas.command import main
        where = ["--listen", "127.0.0.1:0", "--data", {str(tmp_path / "data")!r}]
        sys.exit(main(["serve", *where, "--console", "127.0.0.1:0"]))
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True)
    assert done.returncode == 1
    assert "--console needs the package aiohttp: pip install '.[console]' in a clone of Barnabas" in done.stderr
