"""Record batches: valid ones, ones with a wrong header, and small ones that decompress to large ones."""

from __future__ import annotations

import struct
from random import Random

from barnabas.protocol.records import batch as layout
from barnabas.protocol.records.batch import HEADER_SIZE, seal
from barnabas.protocol.records.builder import NewRecord, build_batch, frame_batch
from barnabas.protocol.records.compression import CompressionType, compress
from barnabas.protocol.records.control import ControlType, build_end_transaction_marker
from tests.fuzz.world import World

NOW_MS = 1_763_000_000_000
_TIMES = (NOW_MS, NOW_MS + 1, 0, -1, -2, 2**63 - 1, -(2**63), NOW_MS + 10**12)
# Where a header's fields are, how each is packed, and what it may claim.
_LIES = (
    (layout.BASE_OFFSET_POSITION, ">q", (0, 1, -1, 2**63 - 1, -(2**63))),
    (layout.BATCH_LENGTH_POSITION, ">i", (0, 1, 48, 49, 50, -1, 2**31 - 1, -(2**31))),
    (layout.PARTITION_LEADER_EPOCH_POSITION, ">i", (-1, 0, 5, 2**31 - 1)),
    (layout.MAGIC_POSITION, ">b", (0, 1, 2, 3, -1, 127)),
    (layout.ATTRIBUTES_POSITION, ">h", (0, 1, 2, 3, 4, 5, 6, 7, 8, 16, 32, 48, 64, 0x7F, -1)),
    (layout.LAST_OFFSET_DELTA_POSITION, ">i", (0, 1, 2, 5, -1, 1000, 2**31 - 1, -(2**31))),
    (layout.BASE_TIMESTAMP_POSITION, ">q", _TIMES),
    (layout.MAX_TIMESTAMP_POSITION, ">q", _TIMES),
    (layout.PRODUCER_ID_POSITION, ">q", (-1, 0, 1, 1000, 2**63 - 1, -(2**63))),
    (layout.PRODUCER_EPOCH_POSITION, ">h", (-1, 0, 1, 32766, 32767, -(2**15))),
    (layout.BASE_SEQUENCE_POSITION, ">i", (-1, 0, 1, 5, 2**31 - 1, -(2**31))),
    (layout.RECORD_COUNT_POSITION, ">i", (0, 1, 2, 5, -1, 1000, 2**31 - 1, -(2**31))),
)
_COUNT_AND_DELTA = (layout.RECORD_COUNT_POSITION, layout.LAST_OFFSET_DELTA_POSITION)


class Batches:
    def __init__(self, random: Random, world: World) -> None:
        self._random = random
        self._world = world

    def any(self) -> bytes:
        chance = self._random.random()
        if chance < 0.5:
            return bytes(self._good())
        if chance < 0.8:
            return self._lying()
        if chance < 0.9:
            return bytes(self._good()) + self._random.choice((bytes(self._good()), self._lying(), b"\0", b"rest"))
        if chance < 0.92:
            return self._bomb()
        return self._nonsense()

    def _good(self) -> bytearray:
        random = self._random
        records = [
            NewRecord(
                random.choice(_TIMES) if random.random() < 0.1 else NOW_MS,
                random.choice((None, b"", b"key", b"key-2")),
                random.choice((None, b"", b"value", b"v" * 1000)),
                random.choice(((), (), (("name", b"value"),), (("", None),))),
            )
            for _ in range(random.choice((1, 1, 2, 5)))
        ]
        compression = CompressionType(random.choice((0, 0, 1, 2, 3, 4)))
        try:
            if random.random() < 0.5:
                return build_batch(records, compression=compression)
            transactional_id, producer_id, epoch = self._world.producer(random)
            return build_batch(
                records,
                compression=compression,
                producer_id=producer_id,
                producer_epoch=epoch,
                base_sequence=self._world.sequence(producer_id, epoch, len(records)),
                transactional=transactional_id is not None and random.random() < 0.7,
            )
        except (struct.error, ValueError):  # times too far from each other for one batch
            return build_batch([NewRecord(NOW_MS, b"key", b"value")])

    def _lying(self) -> bytes:
        random = self._random
        batch = self._good()
        for position, code, claims in random.sample(_LIES, random.choice((1, 1, 2, 3))):
            struct.pack_into(code, batch, position, random.choice(claims))
        if random.random() < 0.3:  # a count that matches its last offset and nothing else
            count = random.choice((2, 10, 10_000, 2**31 - 1))
            for position, value in zip(_COUNT_AND_DELTA, (count, count - 1), strict=True):
                struct.pack_into(">i", batch, position, value)
        if random.random() < 0.2:
            at = random.randrange(HEADER_SIZE, len(batch))
            batch[at] ^= 1 << random.randrange(8)
        if random.random() < 0.85:
            seal(memoryview(batch))
        return bytes(batch)

    def _bomb(self) -> bytes:
        """A few kilobytes that decompress to megabytes of zeros or to very many records."""
        random = self._random
        codec = CompressionType(random.choice((1, 2, 3, 4)))
        size = random.choice((1_000_000, 10_000_000))
        content = random.choice((bytes(size), b"\x0c\0\0\0\1\1\0" * (size // 20)))
        count = random.choice((1, size // 20, 2**31 - 1))
        producer = (-1, -1, -1)
        times = (NOW_MS, random.choice(_TIMES))
        return bytes(frame_batch(compress(codec, content), (codec, count - 1, *times, *producer, count)))

    def _nonsense(self) -> bytes:
        random = self._random
        marker = build_end_transaction_marker(
            ControlType(random.choice((0, 1))), timestamp=NOW_MS, producer_id=0, producer_epoch=0, coordinator_epoch=0
        )
        size = random.choice((1, 12, 17, 60, 61, 62, 200))
        return random.choice((b"", bytes(marker), random.randbytes(size), bytes(size), bytes(self._good())[:size]))
