"""How commands end: 0, 1 or 2, with one sentence at most."""

import argparse
import subprocess
import sys

import pytest

from broker.cli.client.errors import Unreachable
from broker.cli.ending import UsageError, ends_quietly


@pytest.mark.parametrize(
    ("raised", "status", "said"),
    [
        (UsageError("these do not go together"), 2, "barnabas: these do not go together\n"),
        (Unreachable("cannot connect"), 1, "barnabas: cannot connect\n"),
        (FileNotFoundError(2, "No such file", "x"), 1, "barnabas: x: No such file\n"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_what_is_raised_is_said_and_becomes_a_status(raised, status, said, capsys):
    @ends_quietly
    def run(options):
        raise raised

    assert run(argparse.Namespace()) == status
    assert capsys.readouterr().err == said


def test_an_error_of_our_own_is_not_hidden():
    @ends_quietly
    def run(options):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(argparse.Namespace())


def test_a_reader_that_went_away_is_no_error():
    program = """
import sys
from broker.cli.ending import ends_quietly

@ends_quietly
def run(options):
    while True:
        print("x" * 1000)

sys.exit(run(None))
"""
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.readline()
    process.stdout.close()
    assert process.wait(20) == 0
    assert process.stderr.read() == b""
    process.stderr.close()
