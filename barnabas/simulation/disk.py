"""A machine's disk: real files in a folder in memory, and the knowledge of what a loss of power would leave of them.

Storage reads its files as always. What it writes happens for real and is written down beside that: per file what has
come since its last fsync, per folder which names have changed since the folder's. A crash of the process loses nothing
of it. A loss of power keeps what was synced for sure, and of the rest what chance decides: all, nothing, some writes
and not others, a write torn in its middle.
"""

from __future__ import annotations

import errno
import os
import random
import shutil
from collections.abc import Callable, Sequence
from typing import NamedTuple

from barnabas.storage.filesystem import Buffer, FileSystem


class _Write(NamedTuple):
    position: int
    data: bytes


class _Truncate(NamedTuple):
    size: int


class _Name(NamedTuple):
    """A changed name: a file that got one, a folder that was made, something that was renamed or deleted."""

    path: str
    inode: _Inode | None = None  # of a new file
    is_folder: bool = False
    source: str | None = None  # what it was called before

    @property
    def folders(self) -> tuple[str, str]:
        """Whose syncing makes it durable: that of either name."""
        return self.path.rpartition("/")[0], (self.source or "").rpartition("/")[0]


class _Inode:
    __slots__ = ("durable", "pending")

    def __init__(self, durable: bytes = b"") -> None:
        self.durable = bytearray(durable)
        self.pending: list[_Write | _Truncate] = []

    def sync(self) -> None:
        for operation in self.pending:
            _apply(self.durable, operation)
        self.pending.clear()


def _apply(content: bytearray, operation: _Write | _Truncate) -> None:
    if isinstance(operation, _Write):
        position, data = operation
        if len(content) < position:
            content.extend(bytes(position - len(content)))
        content[position : position + len(data)] = data
    else:
        del content[operation.size :]
        content.extend(bytes(operation.size - len(content)))


class Disk:
    """What a machine has on disk. Its processes use it through a `Mount` each, one after the other."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.is_full = False
        self.is_slow = False
        self.operations = 0
        self._durable: dict[str, _Inode | None] = {root: None}  # names; a folder has None
        self.names: dict[str, _Inode | None] = {root: None}
        self.pending: list[tuple[_Name, tuple[str, str]]] = []  # with the folders that have changed
        os.makedirs(root, exist_ok=True)

    def change(self, change: _Name) -> None:
        _settle(self.names, change)
        self.pending.append((change, change.folders))
        self.operations += 1

    def sync_names(self, folder: str) -> None:
        if folder not in self.names:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), folder)
        rest = []
        for each in self.pending:
            if folder in each[1]:
                _settle(self._durable, each[0])
            else:
                rest.append(each)
        self.pending = rest
        self.operations += 1

    def lose_power(self, chance: random.Random) -> str:
        """Forget what was not synced, as far as chance will have it. Returns what was lost, in words."""
        kind = chance.choice(
            ("everything that was not synced", "nothing", "some writes", "a torn end", "data but no names")
        )
        names = dict(self._durable)
        for change, _ in self.pending:
            keep = kind in ("nothing", "a torn end") or (kind == "some writes" and chance.random() < 0.5)
            if keep or (kind == "data but no names" and chance.random() < 0.5):
                _settle(names, change)
        lost = 0
        for inode in dict.fromkeys(inode for inode in names.values() if inode is not None):
            pending, inode.pending = inode.pending, []
            kept = _survivors(pending, kind, chance)
            lost += len(pending) - len(kept)
            for operation in kept:
                _apply(inode.durable, operation)
        # A file in a folder that has not survived has not survived either.
        self.names = {}
        for path in sorted(names):
            if path == self.root or os.path.dirname(path) in self.names:
                self.names[path] = names[path]
        self._durable = dict(self.names)
        self.pending = []
        self._write_out()
        return f"{kind}; {lost} writes"

    def wipe(self) -> None:
        """A new, empty disk."""
        self.names = {self.root: None}
        self._durable = dict(self.names)
        self.pending = []
        self._write_out()

    def _write_out(self) -> None:
        shutil.rmtree(self.root)
        for path, inode in self.names.items():
            if inode is None:
                os.makedirs(path, exist_ok=True)
            else:
                with open(path, "wb") as file:
                    file.write(inode.durable)


def _survivors(pending: Sequence[_Write | _Truncate], kind: str, chance: random.Random) -> list[_Write | _Truncate]:
    kept = list(pending)
    if kind == "everything that was not synced":
        return []
    if kind == "some writes":
        # A prefix for the most part, because a file is written back in order; sometimes with a hole.
        del kept[chance.randrange(len(kept) + 1) :]
        if kept and chance.random() < 0.3:
            del kept[chance.randrange(len(kept))]
    elif kind == "a torn end" and kept and isinstance(kept[-1], _Write):
        last = kept.pop()
        assert isinstance(last, _Write)
        kept.append(last._replace(data=last.data[: chance.randrange(len(last.data) + 1)]))
    return kept


def _settle(names: dict[str, _Inode | None], change: _Name) -> None:
    """Carry out a change of names. What has not survived can neither be renamed nor deleted."""
    path, inode, is_folder, source = change
    if source is None:
        names[path] = inode
    elif source in names:
        moved = names.pop(source)
        if path:
            names[path] = moved
        if is_folder:
            below = source + "/"
            for name in [name for name in names if name.startswith(below)]:
                child = names.pop(name)
                if path:
                    names[path + name[len(source) :]] = child


class Mount(FileSystem):
    """A disk as one process uses it. When the process is dead, nothing that is left of it changes anything."""

    def __init__(self, disk: Disk, chance: random.Random) -> None:
        self._disk = disk
        self._chance = chance
        # Called with the time that a write takes the calling process, where the disk is slow.
        self.stall: Callable[[float], None] | None = None
        self._inodes: dict[int, _Inode] = {}  # of open files
        self._is_dead = False

    def unplug(self) -> None:
        """The process is dead: the system closes its files."""
        self._is_dead = True
        for fd in self._inodes:
            os.close(fd)
        self._inodes.clear()

    def open(self, path: str, *, create: bool = False) -> int:
        disk = self._disk
        inode = disk.names.get(path)
        if inode is None and create:
            self._check()
        fd = super().open(path, create=create)
        if inode is None:
            inode = _Inode()
            disk.change(_Name(path, inode))
        self._inodes[fd] = inode
        return fd

    def close(self, fd: int) -> None:
        if self._inodes.pop(fd, None) is not None:
            os.close(fd)

    def lock(self) -> int:
        """A descriptor that stands for a lock. Like that, it ends with the process."""
        fd = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        self._inodes[fd] = _Inode()
        return fd

    def pwritev(self, fd: int, buffers: Sequence[Buffer], position: int) -> int:
        self._check()
        data = b"".join(buffers)
        written = os.pwrite(fd, data, position)
        self._inodes[fd].pending.append(_Write(position, data))
        self._disk.operations += 1
        if self._disk.is_slow and self.stall is not None:
            self.stall(self._chance.expovariate(1 / 0.05))
        return written

    def truncate(self, fd: int, size: int) -> None:
        self._check(needs_room=False)
        os.ftruncate(fd, size)
        self._inodes[fd].pending.append(_Truncate(size))
        self._disk.operations += 1

    def fsync(self, fd: int) -> None:
        self._inodes[fd].sync()
        self._disk.operations += 1

    def fsync_directory(self, path: str) -> None:
        self._disk.sync_names(path)

    def rename(self, source: str, target: str) -> None:
        self._check(needs_room=False)
        os.replace(source, target)
        self._disk.change(_Name(target, source=source, is_folder=self._disk.names.get(source) is None))

    def unlink(self, path: str) -> None:
        self._check(needs_room=False)
        os.unlink(path)
        self._disk.change(_Name("", source=path))

    def mkdir(self, path: str) -> None:
        self._check()
        os.mkdir(path)
        self._disk.change(_Name(path, is_folder=True))

    def rmdir(self, path: str) -> None:
        self._check(needs_room=False)
        os.rmdir(path)
        self._disk.change(_Name("", source=path, is_folder=True))

    def remove_tree(self, path: str) -> None:
        """In an order that does not depend on the machine."""
        for name in sorted(os.listdir(path)):
            self.unlink(os.path.join(path, name))
        self.rmdir(path)

    def _check(self, *, needs_room: bool = True) -> None:
        if self._is_dead:
            raise OSError(errno.EIO, "this process is dead")
        if needs_room and self._disk.is_full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
