"""`barnabas users`, with Barnabas and with Apache Kafka."""

import subprocess
import sys

import pytest


def barnabas(address, *arguments, input=None):
    command = [sys.executable, "-m", "barnabas", "users", *arguments, "-b", address]
    return subprocess.run(command, input=input, capture_output=True, text=True, timeout=60)


@pytest.fixture(params=["barnabas", pytest.param("kafka", marks=pytest.mark.java)])
def address(request, shared_broker):
    if request.param == "barnabas":
        return shared_broker.bootstrap_servers
    return request.getfixturevalue("apache_kafka").bootstrap


def listed(address, count):
    """Apache Kafka's broker may learn about new users a little later."""
    while True:
        lines = [line.split() for line in barnabas(address, "list").stdout.splitlines()]
        if len(lines) == count + 1:
            return lines


def test_users_are_added_listed_and_deleted(address):
    assert barnabas(address, "set", "jane doe", input="a password\n").returncode == 0
    assert (
        barnabas(address, "set", "bob", "--mechanism", "SCRAM-SHA-512", "--iterations", "8192", input="x\n").returncode
        == 0
    )
    assert listed(address, 2) == [
        ["USER", "MECHANISMS", "ITERATIONS"],
        ["bob", "SCRAM-SHA-512", "8192"],
        ["jane", "doe", "SCRAM-SHA-256,SCRAM-SHA-512", "4096,4096"],
    ]
    assert barnabas(address, "delete", "bob", "jane doe").returncode == 0
    gone = barnabas(address, "delete", "bob")
    assert gone.returncode == 1
    assert "user 'bob'" in gone.stderr
    assert "does not exist" in gone.stderr


def test_an_empty_password_is_refused(shared_broker):
    done = barnabas(shared_broker.bootstrap_servers, "set", "alice", input="\n")
    assert (done.returncode, done.stdout) == (2, "")
    assert "the password is empty" in done.stderr
