"""`barnabas cluster` against a real broker."""

from tests.support.command import columns


def test_brokers_and_features_for_people(served, done):
    head, *tables = done("cluster").splitlines()
    assert head.startswith("Cluster ")
    assert head.endswith(", controller: broker 0")
    brokers = tables[: tables.index("")]
    assert columns("\n".join(brokers)) == [{"ID": "0", "ADDRESS": served.bootstrap, "RACK": "-", "CONTROLLER": "yes"}]


def test_everything_as_json(served, from_json):
    found = from_json("cluster")
    assert found["brokers"] == [{"id": 0, "address": served.bootstrap, "rack": None, "controller": True}]
    assert {"feature": "transaction.version", "finalized": 2, "supported": "0-2"} in found["features"]
    assert {"api": "Produce", "key": 0, "versions": "0-13"} in found["apis"]


def test_apis_are_shown_on_request(done):
    assert "CreateTopics" not in done("cluster")
    assert "CreateTopics" in done("cluster", "--apis")
