"""Changes of leaders in words, from what brokers have noted."""

from types import SimpleNamespace

from barnabas.broker.console.leader_stories import leader_changes
from barnabas.broker.local_cluster import NodeEvent
from barnabas.broker.replica.moments import Moments, RoleChange


def cluster(events=(), **roles):
    """Brokers b0, b1, …, each with what it noted."""
    nodes = {}
    for name, noted in roles.items():
        moments = Moments()
        moments.roles.extend(noted)
        number = int(name[1:])
        replicas = SimpleNamespace(moments=moments)
        nodes[number] = SimpleNamespace(broker_id=number, past=None, broker=SimpleNamespace(replicas=replicas))
    return SimpleNamespace(nodes=nodes, events=list(events))


def role(at_ms, leader, epoch, isr=(), end=0, cut_from=None):
    return RoleChange(at_ms, "t", 0, leader, epoch, isr, end, cut_from)


def everything(topic):
    return True


def test_the_first_leader_is_no_change():
    assert leader_changes(cluster(b0=[role(1, 0, 0, (0, 1))], b1=[role(1, 0, 0)]), everything) == []


def test_a_leader_that_was_killed():
    found = cluster(
        [NodeEvent(5000, 0, "was killed")],
        b0=[role(1, 0, 0, (0, 1, 2))],
        b1=[role(1, 0, 0), role(5200, 1, 1, (1, 2), end=100)],
        b2=[role(1, 0, 0), role(5210, 1, 1, end=103), role(5220, 1, 1, end=100, cut_from=103)],
    )
    (change,) = leader_changes(found, everything)
    assert (change["former"], change["leader"], change["epoch"]) == (0, 1, 1)
    assert change["words"] == [
        "Broker 0 was killed.",
        "200 ms later broker 1 leads instead of 0, in epoch 1 and from offset 100 on.",
        "In sync with it: 2.",
        "Broker 2 cut its log back from 103 to 100: what it had beyond was never committed.",
    ]


def test_a_leader_that_somebody_chose():
    found = cluster(b0=[role(1, 0, 0, (0, 1))], b1=[role(9, 1, 1, (1,))])
    (change,) = leader_changes(found, everything)
    assert change["words"][0] == "The controller chose another leader."
    assert change["words"][-1] == "Nobody else is in sync with it."
    assert leader_changes(found, lambda topic: topic != "t") == []
