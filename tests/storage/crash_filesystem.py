"""A file system that records its operations, and can show the disk as a crash might leave it.

All operations happen for real, so that storage reads its own files as always. They are also recorded. The record up to
some moment determines what the disk certainly holds if the machine crashes then: a file's bytes as of its last fsync,
and the names in a folder as of the folder's last fsync. Whether anything after those has reached the disk is open: a
`Crash` decides it.
"""

import os
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from barnabas.storage.filesystem import Buffer, FileSystem


class Write(NamedTuple):
    inode: int
    position: int
    data: bytes


class Truncate(NamedTuple):
    inode: int
    size: int


class Fsync(NamedTuple):
    inode: int


class Link(NamedTuple):
    """A new file got its name."""

    path: str
    inode: int


class Rename(NamedTuple):
    source: str
    target: str


class Unlink(NamedTuple):
    path: str


class Mkdir(NamedTuple):
    path: str


class FsyncFolder(NamedTuple):
    path: str


DataOperation = Write | Truncate
NameOperation = Link | Rename | Unlink | Mkdir
Operation = DataOperation | NameOperation | Fsync | FsyncFolder


class Crash(NamedTuple):
    """What survives of the writes and the names that were not synced."""

    name: str
    keep_data: Callable[[Sequence[DataOperation]], list[DataOperation]]
    keep_names: Callable[[Sequence[NameOperation]], list[NameOperation]]

    def __repr__(self) -> str:
        return self.name


def _torn(operations: Sequence[DataOperation]) -> list[DataOperation]:
    """All but the second half of the last write."""
    kept = list(operations)
    if kept and isinstance(kept[-1], Write):
        last = kept.pop()
        kept.append(last._replace(data=last.data[: len(last.data) // 2]))
    return kept


def _holed(operations: Sequence[DataOperation]) -> list[DataOperation]:
    """The last write reached the disk but for some of its pages."""
    kept = list(operations)
    if kept and isinstance(kept[-1], Write):
        last = kept.pop()
        third = len(last.data) // 3
        kept.append(last._replace(data=last.data[:third] + bytes(third) + last.data[2 * third :]))
    return kept


def _scrambled(seed: int) -> Crash:
    """Some writes survive and some do not, whatever their order; likewise names."""

    def some_data(operations: Sequence[DataOperation]) -> list[DataOperation]:
        chance = random.Random(f"{seed} {operations[0].inode} {len(operations)}")
        return [operation for operation in operations if chance.random() < 0.5]

    def some_names(operations: Sequence[NameOperation]) -> list[NameOperation]:
        chance = random.Random(f"{seed} {len(operations)}")
        return [operation for operation in operations if chance.random() < 0.5]

    return Crash(f"scrambled {seed}", some_data, some_names)


def _nothing(operations: Sequence[Operation]) -> list[Operation]:
    return []


PROCESS_CRASH = Crash("only the process crashes", list, list)
MACHINE_CRASHES = (
    Crash("all is lost", _nothing, _nothing),  # type: ignore[arg-type]
    Crash("the last write is torn", _torn, list),
    Crash("the last write has a hole", _holed, list),
    Crash("names survive, data does not", _nothing, list),  # type: ignore[arg-type]
    Crash("data survives, names do not", list, _nothing),  # type: ignore[arg-type]
)


def scrambled_crashes(count: int) -> list[Crash]:
    return [_scrambled(seed) for seed in range(count)]


@dataclass
class Disk:
    """Folders, names of files, and their bytes."""

    folders: set[str] = field(default_factory=set)
    names: dict[str, int] = field(default_factory=dict)
    data: dict[int, bytearray] = field(default_factory=dict)

    def copy(self) -> "Disk":
        return Disk(set(self.folders), dict(self.names), {inode: bytearray(data) for inode, data in self.data.items()})

    def change_data(self, operation: DataOperation) -> None:
        content = self.data.setdefault(operation.inode, bytearray())
        match operation:
            case Write(_, position, data):
                if len(content) < position:
                    content.extend(bytes(position - len(content)))
                content[position : position + len(data)] = data
            case Truncate(_, size):
                del content[size:]
                content.extend(bytes(size - len(content)))

    def change_names(self, operation: NameOperation) -> None:
        """What did not survive can neither be renamed nor deleted."""
        match operation:
            case Link(path, inode):
                self.names[path] = inode
            case Mkdir(path):
                self.folders.add(path)
            case Unlink(path):
                self.names.pop(path, None)
                self.folders.discard(path)
            case Rename(source, target):
                if source in self.names:
                    self.names[target] = self.names.pop(source)
                elif source in self.folders:
                    self.folders.remove(source)
                    self.folders.add(target)
                    for path in [path for path in self.names if os.path.dirname(path) == source]:
                        self.names[os.path.join(target, os.path.basename(path))] = self.names.pop(path)

    def write_to(self, old_root: str, new_root: str) -> None:
        """Make real files of it, in another place."""
        for folder in sorted(self.folders):
            os.makedirs(folder.replace(old_root, new_root, 1), exist_ok=True)
        for path, inode in self.names.items():
            if os.path.dirname(path) in self.folders:
                with open(path.replace(old_root, new_root, 1), "wb") as file:
                    file.write(self.data.get(inode, b""))


class CrashFileSystem(FileSystem):
    def __init__(self, root: str) -> None:
        self.root = root
        self.operations: list[Operation] = []
        self._initial = Disk(folders={root})
        self._inodes_by_path: dict[str, int] = {}
        self._inodes_by_fd: dict[int, int] = {}
        self._next_inode = 0
        for folder, _, files in os.walk(root):
            self._initial.folders.add(folder)
            for name in files:
                path = os.path.join(folder, name)
                inode = self._new_inode(path)
                self._initial.names[path] = inode
                with open(path, "rb") as file:
                    self._initial.data[inode] = bytearray(file.read())

    def _new_inode(self, path: str) -> int:
        self._next_inode += 1
        self._inodes_by_path[path] = self._next_inode
        return self._next_inode

    def open(self, path: str, *, create: bool = False) -> int:
        is_new = create and not os.path.exists(path)
        fd = super().open(path, create=create)
        if is_new:
            self.operations.append(Link(path, self._new_inode(path)))
        self._inodes_by_fd[fd] = self._inodes_by_path[path]
        return fd

    def pwritev(self, fd: int, buffers: Sequence[Buffer], position: int) -> int:  # type: ignore[override]
        data = b"".join(buffers)
        written = os.pwritev(fd, [data], position)
        self.operations.append(Write(self._inodes_by_fd[fd], position, data))
        return written

    def truncate(self, fd: int, size: int) -> None:
        super().truncate(fd, size)
        self.operations.append(Truncate(self._inodes_by_fd[fd], size))

    def fsync(self, fd: int) -> None:
        # Not for real: the disk that counts is the one in the operations.
        self.operations.append(Fsync(self._inodes_by_fd[fd]))

    def fsync_directory(self, path: str) -> None:
        self.operations.append(FsyncFolder(path))

    def rename(self, source: str, target: str) -> None:
        super().rename(source, target)
        if source in self._inodes_by_path:
            self._inodes_by_path[target] = self._inodes_by_path.pop(source)
        else:
            for path in [path for path in self._inodes_by_path if os.path.dirname(path) == source]:
                renamed = os.path.join(target, os.path.basename(path))
                self._inodes_by_path[renamed] = self._inodes_by_path.pop(path)
        self.operations.append(Rename(source, target))

    def unlink(self, path: str) -> None:
        super().unlink(path)
        self._inodes_by_path.pop(path, None)
        self.operations.append(Unlink(path))

    def mkdir(self, path: str) -> None:
        super().mkdir(path)
        self.operations.append(Mkdir(path))

    def rmdir(self, path: str) -> None:
        super().rmdir(path)
        self.operations.append(Unlink(path))

    def disk_after(self, crash: Crash) -> Disk:
        """The disk after a crash that comes now."""
        cache = _Cache(self._initial.copy())
        for operation in self.operations:
            cache.take(operation)
        return cache.after(crash)

    def disks_after(self, crash: Crash) -> Iterator[Disk]:
        """The disks after crashes that came before the first operation, after it, after the second, and so on."""
        cache = _Cache(self._initial.copy())
        yield cache.after(crash)
        for operation in self.operations:
            cache.take(operation)
            yield cache.after(crash)


class _Cache:
    """What is on the disk for sure, and what may or may not be."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._data: dict[int, list[DataOperation]] = {}
        self._names: list[NameOperation] = []

    def take(self, operation: Operation) -> None:
        match operation:
            case Write() | Truncate():
                self._data.setdefault(operation.inode, []).append(operation)
            case Fsync(inode):
                for synced in self._data.pop(inode, []):
                    self._disk.change_data(synced)
            case FsyncFolder(path):
                for name in [name for name in self._names if path in _folders_of(name)]:
                    self._disk.change_names(name)
                    self._names.remove(name)
            case _:
                self._names.append(operation)

    def after(self, crash: Crash) -> Disk:
        disk = self._disk.copy()
        for name in crash.keep_names(self._names):
            disk.change_names(name)
        for pending in self._data.values():
            for survivor in crash.keep_data(pending):
                disk.change_data(survivor)
        return disk


def _folders_of(operation: NameOperation) -> tuple[str, ...]:
    match operation:
        case Rename(source, target):
            return os.path.dirname(source), os.path.dirname(target)
        case _:
            return (os.path.dirname(operation.path),)
