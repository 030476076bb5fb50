"""The network between the brokers of a cluster, as proxies on the loopback interface: each direction can be cut.

A direction that is cut holds what is sent until it is healed, and delivers it then, as TCP does after a real partition.
That is how a deposed leader's or controller's requests arrive late. A connection that is opened meanwhile seems to be
open and stays silent. Connections of unknown processes (a tool, say) are never cut.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable, Coroutine, Iterable
from pathlib import Path
from typing import Any, Final, Self

Place = int | str  # a broker by its id, or REGISTRY
REGISTRY: Final = "ZooKeeper"

_CHUNK: Final = 1 << 18


class Network:
    """Proxies in a thread of their own. `cut(a, b)` stops what a sends to b; what b sends to a still arrives."""

    def __init__(self) -> None:
        self.pids: dict[Place, int] = {}  # of the processes that connections are told apart by; kept by the cluster
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="network", daemon=True)
        self._thread.start()
        self._open: dict[tuple[Place, Place], asyncio.Event] = {}
        self._servers: list[asyncio.Server] = []
        self._tasks: set[asyncio.Task[None]] = set()

    def _run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(60)

    def proxy(self, to: Place, port: int, *, source: Place | None = None) -> int:
        """The port of a new proxy before this one. Without a source, it is the process that opened a connection."""

        async def start() -> int:
            async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                task = asyncio.current_task()
                assert task is not None
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
                await self._pass_on(reader, writer, source, to, port)

            listening = _bound()
            server = await asyncio.start_server(accept, sock=listening)
            self._servers.append(server)
            number: int = listening.getsockname()[1]
            return number

        number: int = self._run(start())
        return number

    def cut(self, *directions: tuple[Place, Place]) -> None:
        self._set(directions, asyncio.Event.clear)

    def heal(self, *directions: tuple[Place, Place]) -> None:
        """These directions, or all."""
        self._set(directions or list(self._open), asyncio.Event.set)

    def _set(self, directions: Iterable[tuple[Place, Place]], change: Callable[[asyncio.Event], None]) -> None:
        async def apply() -> None:
            for each in directions:
                change(self._way(each))

        self._run(apply())

    def _way(self, direction: tuple[Place, Place]) -> asyncio.Event:
        if direction not in self._open:
            self._open[direction] = asyncio.Event()
            self._open[direction].set()
        return self._open[direction]

    async def _pass_on(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        source: Place | None,
        to: Place,
        port: int,
    ) -> None:
        far: asyncio.StreamWriter | None = None
        try:
            if source is None:
                source = self._opened_by(writer) or "somebody else"
            there, back = self._way((source, to)), self._way((to, source))
            await there.wait()
            far_reader, far = await asyncio.open_connection("127.0.0.1", port)
            both = [
                asyncio.ensure_future(_pump(reader, far, there)),
                asyncio.ensure_future(_pump(far_reader, writer, back)),
            ]
            try:
                await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for each in both:
                    each.cancel()
                    with contextlib.suppress(OSError, asyncio.CancelledError):
                        await each
        except OSError:
            pass
        finally:
            for each_writer in (writer, far):
                if each_writer is not None:
                    each_writer.close()

    def _opened_by(self, writer: asyncio.StreamWriter) -> Place | None:
        """Which of the known processes has the other end of this connection."""
        inode = _inode_of(writer.get_extra_info("peername")[1], writer.get_extra_info("sockname")[1])
        if inode is None:
            return None
        wanted = f"socket:[{inode}]"
        for place, pid in list(self.pids.items()):
            with contextlib.suppress(OSError):
                for descriptor in Path(f"/proc/{pid}/fd").iterdir():
                    with contextlib.suppress(OSError):
                        if str(descriptor.readlink()) == wanted:
                            return place
        return None

    def close(self) -> None:
        async def end() -> None:
            for server in self._servers:
                server.close()
            for task in list(self._tasks):
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

        self._run(end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, way: asyncio.Event) -> None:
    while data := await reader.read(_CHUNK):
        await way.wait()
        writer.write(data)
        await writer.drain()
    await way.wait()  # the news that a connection was closed takes the same way


def _bound() -> socket.socket:
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    return listening


def _inode_of(port: int, far_port: int) -> str | None:
    """Of the socket of 127.0.0.1 with this port that is connected to that one."""
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with contextlib.suppress(OSError):
            for line in Path(table).read_text().splitlines()[1:]:
                _, local, remote, _, _, _, _, _, _, inode, *_ = line.split()
                if int(local.rpartition(":")[2], 16) == port and int(remote.rpartition(":")[2], 16) == far_port:
                    return inode
    return None
