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


class _Folder:
    """Names and what they stand for: files and folders. A folder that was renamed takes its own along."""

    __slots__ = ("durable", "names")

    def __init__(self) -> None:
        self.names: dict[str, _Node] = {}
        self.durable: dict[str, _Node] = {}  # those that a loss of power leaves for sure


_Node = _Inode | _Folder


class _Change(NamedTuple):
    """What happened to a name of a folder: something got it, was renamed to it, or lost its old one."""

    folder: _Folder
    node: _Node
    name: str | None
    old_name: str | None = None

    def settle(self, names: dict[str, _Node]) -> None:
        """Carry it out. What has not survived can neither be renamed nor deleted."""
        if self.old_name is not None:
            if names.get(self.old_name) is not self.node:
                return
            del names[self.old_name]
        if self.name is not None:
            names[self.name] = self.node


class Disk:
    """What a machine has on disk. Its processes use it through a `Mount` each, one after the other."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.is_full = False
        self.is_slow = False
        self.operations = 0
        self._root = _Folder()
        self._pending: list[_Change] = []  # of names, in the order in which they happened
        os.makedirs(root, exist_ok=True)

    def find(self, path: str) -> _Node | None:
        """What the path stands for; None if there is nothing."""
        node: _Node | None = self._root
        for name in path[len(self.root) :].split("/"):
            if name and node is not None:
                node = node.names.get(name) if isinstance(node, _Folder) else None
        return node

    def folder(self, path: str) -> _Folder:
        found = self.find(path)
        if not isinstance(found, _Folder):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return found

    def add(self, path: str, node: _Node) -> None:
        folder, _, name = path.rpartition("/")
        self._change(_Change(self.folder(folder), node, name))

    def rename(self, source: str, target: str) -> None:
        folder, _, name = target.rpartition("/")
        old_folder, _, old_name = source.rpartition("/")
        assert folder == old_folder, "nothing is moved from folder to folder"
        parent = self.folder(folder)
        self._change(_Change(parent, parent.names[old_name], name, old_name))

    def remove(self, path: str) -> None:
        folder, _, name = path.rpartition("/")
        parent = self.folder(folder)
        self._change(_Change(parent, parent.names[name], None, name))

    def _change(self, change: _Change) -> None:
        change.settle(change.folder.names)
        self._pending.append(change)
        self.operations += 1

    def sync_names(self, path: str) -> None:
        folder = self.folder(path)
        rest = []
        for change in self._pending:
            if change.folder is folder:
                change.settle(folder.durable)
            else:
                rest.append(change)
        self._pending = rest
        self.operations += 1

    def lose_power(self, chance: random.Random) -> str:
        """Forget what was not synced, as far as chance will have it. Returns what was lost, in words."""
        kind = chance.choice(
            ("everything that was not synced", "nothing", "some writes", "a torn end", "data but no names")
        )
        for change in self._pending:
            keep = kind in ("nothing", "a torn end") or (kind == "some writes" and chance.random() < 0.5)
            if keep or (kind == "data but no names" and chance.random() < 0.5):
                change.settle(change.folder.durable)
        self._pending = []
        lost = 0
        folders = [self._root]
        for folder in folders:
            folder.names = dict(folder.durable)
            for _, node in sorted(folder.names.items()):
                if isinstance(node, _Folder):
                    folders.append(node)
                    continue
                pending, node.pending = node.pending, []
                kept = _survivors(pending, kind, chance)
                lost += len(pending) - len(kept)
                for operation in kept:
                    _apply(node.durable, operation)
        self._write_out()
        return f"{kind}; {lost} writes"

    def wipe(self) -> None:
        """A new, empty disk."""
        self._root = _Folder()
        self._pending = []
        self._write_out()

    def _write_out(self) -> None:
        shutil.rmtree(self.root)
        _write_folder(self.root, self._root)


def _write_folder(path: str, folder: _Folder) -> None:
    os.mkdir(path)
    for name, node in sorted(folder.names.items()):
        if isinstance(node, _Folder):
            _write_folder(f"{path}/{name}", node)
        else:
            with open(f"{path}/{name}", "wb") as file:
                file.write(node.durable)


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
        inode = self._disk.find(path)
        if inode is None and create:
            self._check()
        fd = super().open(path, create=create)
        if inode is None:
            inode = _Inode()
            self._disk.add(path, inode)
        assert isinstance(inode, _Inode)
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
        self._disk.rename(source, target)

    def unlink(self, path: str) -> None:
        self._check(needs_room=False)
        os.unlink(path)
        self._disk.remove(path)

    def mkdir(self, path: str) -> None:
        self._check()
        os.mkdir(path)
        self._disk.add(path, _Folder())

    def rmdir(self, path: str) -> None:
        self._check(needs_room=False)
        os.rmdir(path)
        self._disk.remove(path)

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
