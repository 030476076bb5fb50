"""Three hundred fixed seeds: brokers of a cluster keep their promises."""

import pytest

from barnabas.simulation.plan import draw
from barnabas.simulation.run import run
from barnabas.simulation.story import tell

SECONDS = 15  # faults come and go within; healing takes as long as it takes
TESTS = 30
SEEDS_PER_TEST = 10


@pytest.mark.slow
@pytest.mark.parametrize("number", range(TESTS))
def test_clusters_keep_their_promises(number):
    first = 1 + number * SEEDS_PER_TEST
    sends = 0
    for seed in range(first, first + SEEDS_PER_TEST):
        result = run(draw(seed, seconds=SECONDS))
        assert not result.findings, "\n".join(tell(result))
        sends += len(result.history.sends)
    assert sends
