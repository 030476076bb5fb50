"""A proxy in front of a broker that cuts connections at the worst moment.

It knows frames. A request whose answer is to be lost goes to the broker, and once the broker has answered, and so has
applied it, the connection is closed instead.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import struct
import threading
from collections import Counter

from barnabas.protocol.api import ApiKey

# Requests that change something, and whose answer may get lost.
CHANGES = {
    ApiKey.PRODUCE,
    ApiKey.INIT_PRODUCER_ID,
    ApiKey.ADD_PARTITIONS_TO_TXN,
    ApiKey.ADD_OFFSETS_TO_TXN,
    ApiKey.TXN_OFFSET_COMMIT,
    ApiKey.END_TXN,
    ApiKey.OFFSET_COMMIT,
    ApiKey.JOIN_GROUP,
    ApiKey.SYNC_GROUP,
}


class CuttingProxy:
    """Listens on a free port of 127.0.0.1, in a thread of its own, and passes everything on to another port."""

    def __init__(self, chance: random.Random) -> None:
        self.share = 0.0  # of the answers to CHANGES that are lost; set from outside
        self.cut: Counter[str] = Counter()
        self.broker_port = 0
        self._chance = chance
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._thread.start()
        self._server = self._run(asyncio.start_server(self._accept, "127.0.0.1", 0))
        self.port: int = self._server.sockets[0].getsockname()[1]

    def _run(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(60)

    def __enter__(self) -> CuttingProxy:
        return self

    def __exit__(self, *error: object) -> None:
        self._loop.call_soon_threadsafe(self._server.close)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            broker_reader, broker_writer = await asyncio.open_connection("127.0.0.1", self.broker_port)
            keys: dict[int, int] = {}  # what has been asked, by its correlation id
            both = [
                asyncio.ensure_future(self._requests(reader, broker_writer, keys)),
                asyncio.ensure_future(self._answers(broker_reader, writer, keys)),
            ]
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            for each in both:
                each.cancel()
                with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                    await each
            broker_writer.close()
        writer.close()

    async def _requests(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, keys: dict[int, int]) -> None:
        while True:
            frame = await read_frame(reader)
            key, _, correlation_id = struct.unpack_from(">hhi", frame, 4)
            keys[correlation_id] = key
            writer.write(frame)
            await writer.drain()

    async def _answers(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, keys: dict[int, int]) -> None:
        while True:
            frame = await read_frame(reader)
            key = keys.pop(struct.unpack_from(">i", frame, 4)[0], -1)
            if key in CHANGES and self._chance.random() < self.share:
                self.cut[ApiKey(key).api_name] += 1
                return
            writer.write(frame)
            await writer.drain()


async def read_frame(reader: asyncio.StreamReader) -> bytes:
    size = await reader.readexactly(4)
    return size + await reader.readexactly(struct.unpack(">i", size)[0])
