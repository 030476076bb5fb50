"""A real ZooKeeper, from the jars of Apache Kafka 3.9.1, which is the last Kafka that uses one.

with ZooKeeper() as zookeeper: ...      on a free port of the loopback interface; zookeeper.connect has its address
"""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Self

from tests.support.apache_kafka import DEPENDENCIES, SHORT_LIVED, JavaUnavailableError, java, libraries
from tests.support.ports import HeldPort

KAFKA_VERSION = "3.9.1"
KAFKA = (
    f"org.apache.kafka:kafka_2.13:{KAFKA_VERSION}",
    f"org.apache.kafka:kafka-tools:{KAFKA_VERSION}",
    DEPENDENCIES[-1],
)


def unavailable() -> str | None:
    """Why ZooKeeper cannot run here, or None."""
    try:
        java()
        libraries(KAFKA)
    except JavaUnavailableError as error:
        return str(error)
    return None


class ZooKeeper:
    def __init__(self, tick_time_ms: int = 500) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="zookeeper-"))
        self._held = HeldPort()  # so that it comes back where it was
        self.port = self._held.number
        self._tick_time_ms = tick_time_ms
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def connect(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        settings = self.folder / "zoo.cfg"
        settings.write_text(
            f"dataDir={self.folder / 'data'}\nclientPort={self.port}\nclientPortAddress=127.0.0.1\n"
            f"admin.enableServer=false\ntickTime={self._tick_time_ms}\nmaxClientCnxns=0\n"
        )
        with (self.folder / "log").open("ab") as output:
            self._process = subprocess.Popen(
                [
                    *(java(), *SHORT_LIVED, "-cp", f"{libraries(KAFKA)}/*"),
                    *("org.apache.zookeeper.server.quorum.QuorumPeerMain", str(settings)),
                ],
                stdout=output,
                stderr=output,
            )
        self._await_ready()

    def _await_ready(self) -> None:
        end = time.monotonic() + 120
        while True:
            try:
                with socket.create_connection(("127.0.0.1", self.port), 5) as sock:
                    sock.sendall(b"srvr")
                    if sock.recv(100):
                        return
            except OSError:
                pass
            assert self._process is not None
            if self._process.poll() is not None or time.monotonic() > end:
                raise RuntimeError("ZooKeeper did not start:\n" + (self.folder / "log").read_text()[-5000:])
            time.sleep(0.05)  # nothing announces that it listens

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def pause(self) -> None:
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def stop(self) -> None:
        if self._process is not None:
            if self._process.poll() is None:
                self._process.kill()
            self._process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()
