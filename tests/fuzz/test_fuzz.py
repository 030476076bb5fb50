"""Twenty thousand frames of one seed. `make fuzz` sends more, of other seeds, and also limits time and memory."""

import pytest

from tests.fuzz.run import Bounds, Run

SEED = 20261117
FRAMES = 20_000


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_broker_comes_through_unharmed(tmp_path, capsys):
    report = Run(SEED, tmp_path, Bounds()).frames(1, FRAMES, restart_every=FRAMES // 2)
    with capsys.disabled():
        print(f"\n{report}")
    assert report.problems == []
    assert report.frames == FRAMES
    assert report.acknowledged > 0
