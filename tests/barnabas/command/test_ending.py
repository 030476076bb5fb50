"""How commands end: 0, 1 or 2, with one sentence at most."""

import os
import subprocess
import sys

import pytest

from barnabas.client.errors import Unreachable
from barnabas.command.ending import UsageError, status_of


@pytest.mark.parametrize(
    ("raised", "status", "said"),
    [
        (UsageError("these do not go together"), 2, "barnabas: these do not go together\n"),
        (Unreachable("cannot connect"), 1, "barnabas: cannot connect\n"),
        (FileNotFoundError(2, "No such file", "x"), 1, "barnabas: x: No such file\n"),
        (OSError(28, "No space left on device"), 1, "barnabas: No space left on device\n"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_an_exception_is_reported_and_becomes_a_status(raised, status, said, capsys):
    def run():
        raise raised

    assert status_of(run) == status
    assert capsys.readouterr().err == said


def test_an_error_of_our_own_is_not_hidden():
    def run():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        status_of(run)


def test_a_reader_that_went_away_is_not_an_error():
    program = """
import sys
from barnabas.command.ending import status_of

def run():
    while True:
        print("x" * 1000)

sys.exit(status_of(run))
"""
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.readline()
    process.stdout.close()
    assert process.wait(60) == 0
    assert process.stderr.read() == b""
    process.stderr.close()


def test_a_reader_of_the_help_that_went_away_is_not_an_error():
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run([sys.executable, "-m", "barnabas", "--help"], stdout=writer, stderr=subprocess.PIPE)
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")


def test_standard_files_that_are_closed_are_not_taken_by_others():
    """With `<&- >&-`, the next socket would be number 0, and `produce` would read its records from it."""
    program = """
import os
from barnabas.command.ending import hold_standard_files

hold_standard_files()
reader, writer = os.pipe()
print("lost")
assert min(reader, writer) > 2, (reader, writer)
assert os.read(0, 1) == b""
"""
    command = ["sh", "-c", 'exec "$0" -c "$1" <&- >&-', sys.executable, program]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (0, "")
