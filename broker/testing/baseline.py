"""What a test starts from: faults, clock, journal and strict mode. A suite reads it once and restores it for each test.

After that, all brokers run, and none is cut off (testing.nodes).

Topics, groups and their records are not part of it: `reset` and snapshots are for those.
"""

from __future__ import annotations

from typing import Any, Final

from barnabas.broker.testing.clock import MovableClock
from barnabas.broker.testing.http import BadRequest
from barnabas.broker.testing.lab import Lab

FIELDS: Final = ("faults", "ahead_ms", "journal", "strict")


def describe(lab: Lab, clock: MovableClock) -> dict[str, Any]:
    """The fields that `restore` takes, and the number of the journal's last entry."""
    return {
        "faults": [fault.number for fault in lab.faults.all()],
        "ahead_ms": clock.ahead_ms,
        "journal": lab.journal.on,
        "strict": lab.strict.on,
        "last": lab.journal.last_number,
    }


def check(fields: dict[str, Any]) -> None:
    """Raise BadRequest unless all fields are there and have the right types."""
    faults = fields.get("faults")
    if not isinstance(faults, list) or not all(_is_number(number) for number in faults):
        raise BadRequest("'faults' is a list of the numbers of faults to keep", "faults")
    if not _is_number(fields.get("ahead_ms")):
        raise BadRequest("'ahead_ms' is a number of milliseconds", "ahead_ms")
    for name in ("journal", "strict"):
        if not isinstance(fields.get(name), bool):
            raise BadRequest(f"{name!r} is true or false", name)


def restore(lab: Lab, clock: MovableClock, fields: dict[str, Any]) -> None:
    """Remove all other faults, set the clock, and switch the watchers on or off; strict mode forgets its reports."""
    lab.faults.keep_only(fields["faults"])
    if clock.ahead_ms != fields["ahead_ms"]:
        clock.set_wall_ahead(fields["ahead_ms"])
    lab.journal.switch(fields["journal"])
    lab.strict.switch(fields["strict"])
    lab.strict.clear()


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
