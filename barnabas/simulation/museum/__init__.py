"""A museum of mistakes: those that clusters of this kind have made, put back one at a time.

Each exhibit replaces functions of the real brokers, for one run of the simulation, by ones with the mistake. A
simulation that does not find it is too tame. `barnabas museum` lists them, and `barnabas museum kip-101` plays one.
"""

from __future__ import annotations

from typing import Final

from barnabas.simulation.museum import control, coordination, orders, reading, replication
from barnabas.simulation.museum.exhibit import Exhibit

EXHIBITS: Final[dict[str, Exhibit]] = {
    each.name: each
    for each in (
        *replication.EXHIBITS,
        *reading.EXHIBITS,
        *control.EXHIBITS,
        *orders.EXHIBITS,
        *coordination.EXHIBITS,
    )
}
