"""What a partition notes of rare events, for people who look at a console."""

from tests.storage.support import batch


def of_producer(sequence, epoch=0, count=1):
    return batch(*[b"x"] * count, producer_id=7, producer_epoch=epoch, base_sequence=sequence)


def test_what_a_producer_sends_again_or_out_of_order(make, replicas):
    _, appends = make()
    appends.turn(a=of_producer(0, count=2))
    appends.turn(again=of_producer(0, count=2), gap=of_producer(9), next_epoch=of_producer(0, epoch=1))
    appends.turn(fenced=of_producer(2))
    noted = replicas.moments.repeats
    assert [(each.kind, each.producer_epoch, each.first_sequence, each.records) for each in noted] == [
        ("duplicate", 0, 0, 2),
        ("gap", 0, 9, 1),
        ("fenced", 0, 2, 1),
    ]
    assert noted[0].words == "it is in the log already, at offset 0"
    assert "2 is next" in noted[1].words


def test_what_continues_in_order_notes_nothing(make, replicas):
    _, appends = make()
    for sequence in range(10):
        appends.turn(it=of_producer(sequence))
    assert not replicas.moments.repeats


def test_who_leads_and_who_follows(make, replicas):
    partition, _ = make()
    partition.lead(3, 1, (0, 1), (0, 1))
    partition.lead(3, 2, (0, 1), (0,))  # the same epoch: not a change of leaders
    partition.follow(1, 4)
    partition.follow(1, 4)
    noted = [(each.leader_id, each.leader_epoch, each.isr) for each in replicas.moments.roles]
    assert noted == [(0, 3, (0, 1)), (1, 4, ())]


def test_a_single_replica_has_no_story(make, replicas):
    partition, _ = make()
    partition.lead(3)
    assert not replicas.moments.roles
