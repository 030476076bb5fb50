"""Everything that happens in a run, in order, as one hash; and what a person wants to read of it."""

from __future__ import annotations

import hashlib
from typing import NamedTuple


class Event(NamedTuple):
    at: float
    who: str
    what: str
    kind: str = ""


class Sample(NamedTuple):
    """A replica as it was from some moment on."""

    at: float
    who: str
    partition: str
    leads: bool
    leader_epoch: int
    high_watermark: int
    end_offset: int


class Trace:
    def __init__(self) -> None:
        self.samples: list[Sample] = []
        self.events: list[Event] = []
        self._hash = hashlib.blake2b(digest_size=16)
        self.hidden = ""  # a path of this machine, which must not show

    def note(self, at: float, who: str, what: str, kind: str = "") -> None:
        if self.hidden:
            what = what.replace(self.hidden, "")
        self.events.append(Event(at, who, what, kind))
        self._hash.update(f"{at!r} {who}: {what}\n".encode())

    def sample(self, sample: Sample) -> None:
        self.samples.append(sample)
        at, who, partition, leads, leader_epoch, high_watermark, end_offset = sample
        self._hash.update(f"{at!r} {who} {partition} {leads} {leader_epoch} {high_watermark} {end_offset}\n".encode())

    def arrived(self, at: float, where: str, data: bytes | bytearray) -> None:
        """Bytes of the network: they count, but nobody wants to read them."""
        self._hash.update(f"{at!r} {where} {len(data)}\n".encode())
        self._hash.update(data)

    @property
    def digest(self) -> str:
        return self._hash.hexdigest()
