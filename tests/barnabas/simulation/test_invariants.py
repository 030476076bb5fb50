"""barnabas.simulation.invariants: each broken promise is noticed in the step that breaks it."""

import json
from types import SimpleNamespace

import pytest

from barnabas.broker.controller.images import PartitionImage
from barnabas.broker.controller.znodes import state_path, topic_path, write_state, write_topic
from barnabas.broker.registry.registry import Change, Node
from barnabas.broker.registry.tree import Tree
from barnabas.broker.replica.leadership import IsrChange
from barnabas.simulation import invariants
from barnabas.simulation.loop import Scheduler
from barnabas.simulation.trace import Trace
from barnabas.simulation.views import BatchView, ReplicaView

TOPIC = b"topic id of 16 b"


class Replica:
    """A replica of t-0, and its batches of one record each: the leader epoch and the checksum of each."""

    def __init__(self):
        self.batches = []
        self.leader_epoch = 0
        self.leads = False
        self.high_watermark = 0
        self.truncations = 0
        self.isr = (1, 2)
        self.asked = None
        self.config = SimpleNamespace(compact=False)
        self.forgotten_epochs = False
        self.leader_epochs = SimpleNamespace(
            epoch_of=lambda offset: -1 if self.forgotten_epochs else self.batches[offset][0]
        )

    def view(self):
        return ReplicaView(
            "t",
            TOPIC,
            0,
            self.leader_epoch,
            self.leads,
            0,
            self.high_watermark,
            len(self.batches),
            self.truncations,
            self.isr if self.leads else None,
            self.asked,
        )

    def cut(self, offset):
        del self.batches[offset:]
        self.high_watermark = min(self.high_watermark, offset)
        self.truncations += 1


class Brokers:
    """Two brokers with a replica each."""

    def __init__(self, monkeypatch):
        self.scheduler = Scheduler(1)
        self.trace = Trace()
        self.now = 0.0
        self.broken = []
        self.replicas = {1: Replica(), 2: Replica()}
        self.machines = {
            number: SimpleNamespace(
                loop=self.scheduler.process(f"broker {number}"),
                broker=number,
                broker_id=number,
                name=f"broker {number}",
            )
            for number in (1, 2)
        }
        monkeypatch.setattr(
            invariants, "changed_replicas", lambda number, seen: [(self.replicas[number].view(), self.replicas[number])]
        )
        monkeypatch.setattr(
            invariants,
            "batches_of",
            lambda log, start, end: [
                BatchView(offset, offset, *batch, 100)
                for offset, batch in enumerate(log.batches)
                if start <= offset < end
            ],
        )
        self.registry = SimpleNamespace(tree=Tree())
        self.invariants = invariants.Invariants(self)

    def in_the_tree(self, leader, leader_epoch, isr):
        partition = PartitionImage(0, (1, 2), leader, leader_epoch, isr)
        for path, data in (
            (topic_path("t"), write_topic(TOPIC, [partition])),
            (state_path("t", 0), write_state(partition, 1)),
        ):
            self.registry.tree.put(path, Node(data))

    def happened(self, who, what, kind=""):
        pass

    def found(self, promise, what):
        self.broken.append(promise)

    def look(self):
        self.scheduler.on_instant({machine.loop: None for machine in self.machines.values()})
        return self.broken


@pytest.fixture
def brokers(monkeypatch):
    """The first one leads, and both have two committed records."""
    brokers = Brokers(monkeypatch)
    leader, follower = brokers.replicas.values()
    leader.leads = True
    leader.batches = [(0, 11), (0, 12)]
    follower.batches = [(0, 11), (0, 12)]
    brokers.look()
    leader.high_watermark = follower.high_watermark = 2
    assert brokers.look() == []
    return brokers


def test_what_is_not_committed_may_differ_and_be_cut(brokers):
    leader, follower = brokers.replicas.values()
    leader.batches.append((0, 13))
    follower.batches.append((0, 99))
    brokers.look()
    follower.cut(2)
    follower.batches.append((0, 13))
    leader.high_watermark = 3
    brokers.look()
    follower.high_watermark = 3
    assert brokers.look() == []


def test_logs_that_differ_below_the_high_watermark(brokers):
    leader, follower = brokers.replicas.values()
    leader.batches.append((0, 13))
    leader.high_watermark = 3
    brokers.look()
    follower.batches.append((0, 99))
    follower.high_watermark = 3
    assert brokers.look() == ["below the high watermark all logs agree"]


def test_a_new_leader_that_lacks_something(brokers):
    leader, follower = brokers.replicas.values()
    leader.batches.append((0, 13))
    leader.high_watermark = 3
    brokers.look()
    follower.leads, follower.leader_epoch = True, 1
    assert brokers.look() == ["a leader has everything that is committed"]


def test_a_new_leader_that_has_something_else(brokers):
    leader, follower = brokers.replicas.values()
    leader.batches.append((0, 13))
    leader.high_watermark = 3
    follower.batches.append((0, 99))
    brokers.look()
    follower.leads, follower.leader_epoch = True, 1
    assert brokers.look() == ["below the high watermark all logs agree"]


def test_a_leader_that_is_deposed_and_does_not_know_it_may_have_something_else(brokers):
    leader, follower = brokers.replicas.values()
    follower.leads, follower.leader_epoch = True, 1
    follower.batches.append((1, 13))
    follower.high_watermark = 3
    brokers.look()
    leader.batches.append((0, 99))
    assert brokers.look() == []


def test_two_leaders_in_one_epoch(brokers):
    brokers.replicas[2].leads = True
    assert brokers.look() == ["one leader in an epoch"]


def test_an_epoch_that_goes_back(brokers):
    brokers.replicas[2].leader_epoch = 5
    brokers.look()
    brokers.replicas[2].leader_epoch = 4
    assert brokers.look() == ["epochs never go back"]


def test_a_high_watermark_that_goes_back(brokers):
    brokers.replicas[1].high_watermark = 1
    assert brokers.look() == ["a high watermark never goes back"]


def test_a_high_watermark_beyond_the_log(brokers):
    brokers.replicas[2].high_watermark = 3
    assert brokers.look() == ["the high watermark is in the log"]


def test_a_replica_that_cuts_what_is_committed(brokers):
    brokers.replicas[2].cut(1)
    assert brokers.look() == ["what is committed is never cut"]


def test_a_disk_that_was_lost_may_be_behind(brokers):
    brokers.invariants.forget_disk(2)
    brokers.replicas[2] = Replica()
    assert brokers.look() == []


def test_after_an_unclean_election_less_is_committed(brokers):
    brokers.invariants.unclean["t"] = None
    follower = brokers.replicas[2]
    brokers.replicas[1].batches.append((0, 13))
    brokers.replicas[1].high_watermark = 3
    brokers.look()
    follower.leads, follower.leader_epoch = True, 1
    follower.batches.append((1, 14))
    brokers.look()
    follower.high_watermark = 3
    assert brokers.look() == []


# --- the tree ---

STATE = "/brokers/topics/t/partitions/0/state"


class TreeOfBrokers:
    def __init__(self):
        self.broken = []
        self.tree = invariants.TreeInvariants(self)
        self.write("/controller", b"{}")
        self.write("/controller_epoch", b"3")

    def found(self, promise, what):
        self.broken.append(promise)

    def write(self, path, data, session=1):
        self.tree.changed(1, SimpleNamespace(number=session, name="broker"), [Change(path, Node(data))])
        return self.broken

    def state(self, session=1, **fields):
        state = {"controller_epoch": 3, "leader": 1, "leader_epoch": 4, "isr": [1, 2], **fields}
        return self.write(STATE, json.dumps(state).encode(), session)


@pytest.fixture
def tree():
    return TreeOfBrokers()


def test_a_good_tree(tree):
    tree.state()
    tree.state(isr=[1])
    tree.state(leader=-1, leader_epoch=5, isr=[1])
    assert tree.write("/controller_epoch", b"4") == []


@pytest.mark.parametrize(
    ("fields", "promise"),
    [
        ({"leader_epoch": 3}, "epochs never go back"),
        ({"controller_epoch": 9}, "a deposed controller changes nothing"),
        ({"session": 2}, "a deposed controller changes nothing"),
        ({"isr": []}, "an ISR is never empty"),
        ({"leader": 3}, "a leader is in sync"),
    ],
)
def test_a_bad_state(tree, fields, promise):
    tree.state()
    assert tree.state(**fields) == [promise]


def test_a_controller_epoch_that_goes_back(tree):
    assert tree.write("/controller_epoch", b"2") == ["epochs never go back"]


def test_whoever_was_elected_last_decides_until_another_is(tree):
    tree.tree.changed(2, None, [Change("/controller", None)])
    assert tree.state() == []
    tree.write("/controller", b"{}", session=2)
    assert tree.state() == ["a deposed controller changes nothing"]


def test_a_log_that_does_not_know_its_epochs(brokers):
    leader = brokers.replicas[1]
    leader.batches.append((0, 13))
    leader.high_watermark = 3
    leader.forgotten_epochs = True
    assert brokers.look() == ["a log knows its leader epochs"]


def test_a_newcomer_in_the_isr_that_lacks_something(brokers):
    leader = brokers.replicas[1]
    leader.isr = (1,)
    leader.batches.append((0, 13))
    leader.high_watermark = 3
    assert brokers.look() == []
    leader.asked = IsrChange(0, 0, (1, 2))
    assert brokers.look() == ["whoever is in sync has everything that is committed"]


def test_a_newcomer_in_the_isr_that_has_everything(brokers):
    leader, follower = brokers.replicas.values()
    leader.isr = (1,)
    follower.batches.append((0, 13))
    leader.batches.append((0, 13))
    leader.high_watermark = 3
    leader.asked = IsrChange(0, 0, (1, 2))
    assert brokers.look() == []


def test_a_leader_that_does_not_wait_for_everybody_in_sync(brokers):
    leader, _ = brokers.replicas.values()
    brokers.in_the_tree(leader=1, leader_epoch=0, isr=(1, 2))
    leader.isr = (1,)
    assert brokers.look() == ["a leader waits for everybody who is in sync"]


def test_a_leader_that_waits_for_more_than_are_in_sync_or_is_deposed(brokers):
    leader, _ = brokers.replicas.values()
    brokers.in_the_tree(leader=1, leader_epoch=0, isr=(1,))
    leader.asked = IsrChange(0, 0, (1,))
    assert brokers.look() == []
    brokers.in_the_tree(leader=2, leader_epoch=1, isr=(1, 2))
    leader.isr = (1,)
    assert brokers.look() == []
