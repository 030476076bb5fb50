"""`barnabas acls`, with Barnabas and with Apache Kafka."""

import json
import subprocess
import sys

import pytest

from barnabas import Barnabas
from tests.support.apache_kafka import ApacheKafka

AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}


def barnabas(address, *arguments):
    command = [sys.executable, "-m", "barnabas", "acls", *arguments, "-b", address]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


@pytest.fixture(scope="module", params=["barnabas", pytest.param("kafka", marks=pytest.mark.java)])
def address(request):
    if request.param == "barnabas":
        with Barnabas(AUTHORIZER) as broker:
            yield broker.bootstrap_servers
        return
    with ApacheKafka(AUTHORIZER) as kafka:
        yield kafka.bootstrap


def rows(address, count, *arguments):
    """What is listed; asked again until there are this many rules, because Apache Kafka answers before they are
    effective."""
    while True:
        done = barnabas(address, "list", "--json", *arguments)
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        if len(found) == count:
            return found


def test_rules_are_created_listed_and_deleted(address):
    assert barnabas(address, "create", "alice", "read", "describe-configs", "--topic", "orders").returncode == 0
    denied = barnabas(address, "create", "*", "ALL", "--group", "g-", "--prefixed", "--deny", "--host", "10.0.0.1")
    assert (denied.returncode, denied.stderr) == (0, "")
    assert barnabas(address, "create", "User:bob", "cluster_action", "--cluster").returncode == 0
    assert rows(address, 4)[0] == {
        "resource": "topic",
        "name": "orders",
        "pattern": "literal",
        "principal": "User:alice",
        "host": "*",
        "permission": "allow",
        "operation": "read",
    }
    (row,) = rows(address, 1, "--permission", "deny")
    assert (row["principal"], row["pattern"], row["host"]) == ("User:*", "prefixed", "10.0.0.1")
    table = barnabas(address, "list", "--principal", "bob").stdout.split("\n")
    assert table[1].split() == [
        *("cluster", "kafka-cluster", "literal", "User:bob", "*", "allow", "cluster-action"),
    ]
    deleted = barnabas(address, "delete", "--topic", "orders", "--operation", "read", "--json")
    assert [row["operation"] for row in json.loads(deleted.stdout)] == ["read"]
    rows(address, 3)
    assert barnabas(address, "delete", "--all").returncode == 0
    rows(address, 0)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["delete"], "say which rules to delete"),
        (["delete", "--all", "--topic", "t"], "takes no other option"),
        (["create", "alice", "read"], "one of the arguments"),
        (["create", "alice", "reed", "--topic", "t"], "'reed' is not one of all, read"),
        (["create", "alice", "alter", "--cluster", "--prefixed"], "does not apply to --cluster"),
    ],
)
def test_what_makes_no_sense(shared_broker, arguments, complaint):
    done = barnabas(shared_broker.bootstrap_servers, *arguments)
    assert done.returncode == 2
    assert complaint in done.stderr


def test_without_an_authorizer(shared_broker):
    done = barnabas(shared_broker.bootstrap_servers, "list")
    assert (done.returncode, done.stdout) == (1, "")
    assert "No Authorizer is configured" in done.stderr
