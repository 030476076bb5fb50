"""A broker, and commands that run in the test's own process: what needs no signals, pipes or terminals."""

import json
from itertools import count
from types import SimpleNamespace

import pytest

from barnabas.command import main
from tests.support.apache_kafka import ApacheKafka
from tests.support.broker_process import BrokerProcess

_names = count(1)


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A broker for all tests here; each has topics and groups of its own."""
    with BrokerProcess(tmp_path_factory.mktemp("command-line"), settings={"num.partitions": "3"}) as process:
        yield process


@pytest.fixture(scope="session")
def apache_kafka():
    """The reference for all tests here; each has topics and groups of its own."""
    with ApacheKafka({"num.partitions": "3"}) as kafka:
        yield kafka


@pytest.fixture
def topic():
    return f"topic-{next(_names)}"


@pytest.fixture
def group():
    return f"group-{next(_names)}"


@pytest.fixture
def command(served, capsys):
    """Run a command against the broker; returns its status and what it printed to stdout and stderr."""

    def run(*arguments):
        status = main([*map(str, arguments), "--bootstrap", served.bootstrap])
        said = capsys.readouterr()
        return SimpleNamespace(status=status, out=said.out, err=said.err)

    return run


@pytest.fixture
def done(command):
    """Run a command that must succeed; returns what it printed."""

    def run(*arguments):
        result = command(*arguments)
        assert (result.status, result.err) == (0, ""), result.err
        return result.out

    return run


@pytest.fixture
def from_json(done):
    return lambda *arguments: json.loads(done(*arguments, "--json"))


@pytest.fixture
def produce(done, tmp_path):
    def run(topic, *lines, options=()):
        file = tmp_path / "lines"
        file.write_bytes(b"".join(line.encode() + b"\n" for line in lines))
        done("produce", topic, "--file", file, *options)

    return run
