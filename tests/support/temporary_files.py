"""Where the tests' temporary files are: in memory, where there is room for them.

Brokers, Apache Kafka and ZooKeeper sync their files all the time. On a disk that takes a quarter of the computing time
of a test and half of its duration, and a disk that is busy makes others miss their deadlines.

Everything that asks for a temporary folder gets one there, also in processes that tests start (TMPDIR). It is removed
at the end of the run. After a failure it stays until the next run of the same checkout. A TMPDIR that is set takes
precedence.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from pathlib import Path

MEMORY = Path("/dev/shm")
ROOM = 6 << 30  # a whole run leaves more than a gigabyte behind


class TemporaryFiles:
    def __init__(self, checkout: Path, memory: Path = MEMORY) -> None:
        self._memory = memory
        self._prefix = f"barnabas-tests-{hashlib.sha256(str(checkout).encode()).hexdigest()[:8]}-"
        self.folder: Path | None = None
        self.is_kept = False

    def begin(self) -> None:
        if "TMPDIR" in os.environ or not self._is_usable():
            return
        self._remove_those_of_former_runs()
        self.folder = self._memory / f"{self._prefix}{os.getpid()}"
        self.folder.mkdir(mode=0o700)
        self._use(str(self.folder))

    def end(self) -> None:
        if self.folder is None:
            return
        self._use(None)
        if not self.is_kept:
            shutil.rmtree(self.folder, ignore_errors=True)

    @staticmethod
    def _use(folder: str | None) -> None:
        if folder is None:
            del os.environ["TMPDIR"]
        else:
            os.environ["TMPDIR"] = folder
        tempfile.tempdir = None  # it is looked up once more

    def _is_usable(self) -> bool:
        """Programs are run from there, too."""
        try:
            found = os.statvfs(self._memory)
        except OSError:
            return False
        room = min(found.f_bavail * found.f_frsize, _available_memory())
        return not found.f_flag & os.ST_NOEXEC and os.access(self._memory, os.W_OK) and room > ROOM

    def _remove_those_of_former_runs(self) -> None:
        for each in self._memory.glob(f"{self._prefix}*"):
            if not Path("/proc", each.name.removeprefix(self._prefix)).exists():
                shutil.rmtree(each, ignore_errors=True)


def _available_memory() -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return 0
