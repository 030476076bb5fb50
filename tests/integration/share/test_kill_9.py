"""A broker that is killed with kill -9: nothing that was accepted comes again, and nothing else is lost.

The moment is chosen by how much was acknowledged, from a seed that is printed; BARNABAS_SEED repeats it.
"""

import os
import random

from barnabas.protocol.errors import ErrorCode
from tests.support.broker_process import BrokerProcess
from tests.support.share_side import ShareSide

SETTINGS = {
    "node.id": "1",
    "share.coordinator.state.topic.num.partitions": "2",
    "share.coordinator.snapshot.update.records.per.snapshot": "5",
}
ROUNDS = 4
RECORDS_PER_ROUND = 120
BATCH = 6
DELIVERY_LIMIT = 5


class Reader:
    """A member that accepts most records, and releases or rejects some."""

    def __init__(self, side, member, place):
        self.side, self.member, self.place = side, member, place
        self.epoch = 0

    def read(self, made_up, ledger):
        """Fetch once, and acknowledge what comes."""
        answer = self.side.fetch(
            self.member, self.epoch, self.place, max_records=made_up.randrange(1, 20), max_wait_ms=200, min_bytes=1
        )
        assert not answer.error_code
        self.epoch += 1
        for topic in answer.responses:
            for partition in topic.partitions:
                assert not partition.error_code
                for each in partition.acquired_records:
                    self._acknowledge(
                        made_up, ledger, range(each.first_offset, each.last_offset + 1), each.delivery_count
                    )

    def _acknowledge(self, made_up, ledger, offsets, count):
        again = ledger.done.intersection(offsets)
        assert not again, f"came again: {sorted(again)}"
        kinds = (1, 1, 1, 1, 2, 3) if count < DELIVERY_LIMIT else (1, 3)
        types = [made_up.choice(kinds) for _ in offsets]
        ledger.unsure.update(offsets)  # until there is an answer
        answer = self.side.acknowledge(self.member, self.epoch, {self.place: [(offsets[0], offsets[-1], types)]})
        self.epoch += 1
        (result,) = answer.responses[0].partitions
        assert result.error_code == ErrorCode.NONE
        ledger.unsure.difference_update(offsets)
        ledger.done.update(offset for offset, kind in zip(offsets, types, strict=True) if kind != 2)


class Ledger:
    def __init__(self):
        self.done = set()
        self.unsure = set()


def test_nothing_accepted_comes_again_and_nothing_else_is_lost(tmp_path):
    seed = int(os.environ.get("BARNABAS_SEED", random.randrange(2**32)))
    print(f"BARNABAS_SEED={seed}")
    made_up = random.Random(seed)
    ledger = Ledger()
    total = 0
    with BrokerProcess(tmp_path / "data", settings=SETTINGS) as broker:
        side = ShareSide(broker.port)
        place = side.place("t")
        side.group = "g"
        side.wait_for_coordinator()
        assert not side.initialize(place, start_offset=0).results[0].partitions[0].error_code
        for number in range(ROUNDS):
            side.produce(place, *[BATCH] * (RECORDS_PER_ROUND // BATCH))
            total += RECORDS_PER_ROUND
            readers = [Reader(side, f"{name}-{number}", place) for name in "ab"]
            enough = len(ledger.done) + made_up.randrange(10, RECORDS_PER_ROUND - 20)
            while len(ledger.done) < enough:
                made_up.choice(readers).read(made_up, ledger)
            # One acknowledgement may be under way when the broker dies.
            broker.kill()
            side.begin("g")
            side.close()
            broker.start()
            side = _again(side, broker.port)
        reader = Reader(side, "last", place)
        while len(ledger.done | ledger.unsure) < total:
            reader.read(made_up, ledger)
        assert ledger.done | ledger.unsure == set(range(total))
        side.close()


def _again(before, port):
    """The same side of the broker as it is now."""
    side = ShareSide(port)
    side._ids, side._names, side.group = before._ids, before._names, before.group
    side.wait_for_coordinator()
    return side
