"""The commands that talk to a broker know the protocol alone, and cost the broker's start nothing."""

import subprocess
import sys

import pytest


def imported_by(module):
    program = f"import sys, {module}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.mark.parametrize("command", ["topics", "groups", "produce", "consume", "conformance"])
def test_a_client_has_nothing_of_a_broker(command):
    modules = imported_by(f"broker.cli.{command}")
    assert not [name for name in modules if name.startswith("storage")]
    assert not [name for name in modules if name.startswith("broker.") and not name.startswith("broker.cli")]


@pytest.mark.parametrize("module", ["broker.cli", "broker.cli.serve"])
def test_a_broker_has_nothing_of_a_client(module):
    assert not [name for name in imported_by(module) if name.startswith("broker.cli.client")]
