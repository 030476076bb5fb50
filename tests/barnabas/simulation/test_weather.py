"""barnabas.simulation.weather: the same seed gives the same weather, and brokers keep their promises in each."""

import pytest

from barnabas.simulation.faults import Faults
from barnabas.simulation.plan import Plan, draw
from barnabas.simulation.run import run
from barnabas.simulation.story import tell
from barnabas.simulation.weather import WEATHERS

SECONDS = 15


@pytest.mark.parametrize("weather", WEATHERS)
def test_a_weather_follows_from_the_seed(weather):
    plan = draw(7, seconds=SECONDS, weather=weather)
    assert plan == draw(7, seconds=SECONDS, weather=weather)
    assert plan == Plan.from_json(plan.to_json())
    assert plan != draw(8, seconds=SECONDS, weather=weather)
    assert all(hasattr(Faults, f"_{fault.kind.replace(' ', '_')}") for fault in plan.faults)


@pytest.mark.slow
@pytest.mark.parametrize("weather", WEATHERS)
def test_brokers_keep_their_promises_in_it(weather):
    for seed in range(1, 4):
        result = run(draw(seed, seconds=SECONDS, weather=weather))
        assert not result.findings, "\n".join(tell(result))
