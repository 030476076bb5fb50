"""Twenty thousand frames of one seed. `make fuzz` sends more, of other seeds, with tighter limits."""

import pytest

from tests.fuzz.run import Bounds, Run

SEED = 20261117
FRAMES = 20_000
# Seconds of CPU time of the loop's thread. Its turns are meant to be below 0.02. Other tests that run at the same time,
# and the host of a virtual machine, make them longer, so this only finds work without any bound.
LONGEST_TURN = 0.15


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_broker_comes_through_unharmed(tmp_path, capsys):
    report = Run(SEED, tmp_path, Bounds(turn_seconds=LONGEST_TURN)).frames(1, FRAMES, restart_every=FRAMES // 2)
    with capsys.disabled():
        print(f"\n{report}")
    assert report.problems == []
    assert report.frames == FRAMES
    assert report.acknowledged > 0
