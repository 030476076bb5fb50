"""`barnabas quotas`, with Barnabas and with Apache Kafka."""

import json
import subprocess
import sys

import pytest

from barnabas import Barnabas


def barnabas(address, *arguments):
    command = [sys.executable, "-m", "barnabas", "quotas", *arguments, "-b", address]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


@pytest.fixture(scope="module", params=["barnabas", pytest.param("kafka", marks=pytest.mark.java)])
def address(request):
    if request.param == "barnabas":
        with Barnabas() as broker:
            yield broker.bootstrap_servers
        return
    yield request.getfixturevalue("apache_kafka").bootstrap


def listed(address, *arguments, until):
    """Apache Kafka's broker may learn about an alteration a little later."""
    while True:
        done = barnabas(address, "list", *arguments)
        assert done.returncode == 0, done.stderr
        if until(done.stdout):
            return done.stdout


def test_quotas_are_set_listed_and_removed(address):
    done = barnabas(address, "set", "--user", "alice", "producer_byte_rate=1048576", "request_percentage=12.5")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert barnabas(address, "set", "--user", "alice", "--default-client-id", "consumer_byte_rate=5").returncode == 0
    assert barnabas(address, "set", "--ip", "192.0.2.1", "connection_creation_rate=7").returncode == 0
    shown = listed(address, until=lambda text: "192.0.2.1" in text)
    assert [line.split() for line in shown.splitlines()] == [
        ["USER", "CLIENT-ID", "IP", "QUOTA", "VALUE"],
        ["-", "-", "192.0.2.1", "connection_creation_rate", "7"],
        ["alice", "-", "-", "producer_byte_rate", "1048576"],
        ["alice", "-", "-", "request_percentage", "12.5"],
        ["alice", "(default)", "-", "consumer_byte_rate", "5"],
    ]
    assert json.loads(listed(address, "--user", "alice", "--default-client-id", "--json", until=len)) == [
        {"entity": {"user": "alice", "client-id": None}, "quotas": {"consumer_byte_rate": 5.0}}
    ]
    assert barnabas(address, "unset", "--ip", "192.0.2.1", "connection_creation_rate").returncode == 0
    assert barnabas(address, "unset", "--user", "alice", "--default-client-id", "consumer_byte_rate").returncode == 0
    unset = barnabas(address, "unset", "--user", "alice", "producer_byte_rate", "request_percentage")
    assert unset.returncode == 0
    listed(address, until=lambda text: len(text.splitlines()) == 1)


def test_a_refusal_by_the_broker_is_reported(address):
    done = barnabas(address, "set", "--user", "alice", "producer_byte_rate=0")
    assert (done.returncode, done.stdout) == (1, "")
    assert "producer_byte_rate must be greater than 0" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["set", "producer_byte_rate=1"], "whose quotas?"),
        (["set", "--user", "alice", "speed=1"], "'speed' is not a quota"),
        (["set", "--user", "alice", "producer_byte_rate=fast"], "producer_byte_rate=NUMBER"),
        (["set", "--user", "alice", "--default-user", "producer_byte_rate=1"], "not allowed with"),
        (["unset", "--user", "alice", "speed"], "speed"),
    ],
)
def test_contradictory_arguments(arguments, sentence):
    done = barnabas("127.0.0.1:1", *arguments)
    assert done.returncode == 2
    assert sentence in done.stderr
