"""barnabas.simulation.disk: what survives a dead process, and what a loss of power."""

import os
import random

import pytest

from barnabas.simulation.disk import Disk, Mount


class Chance(random.Random):
    """Decides for one kind of loss."""

    def __init__(self, kind):
        super().__init__(1)
        self._kind = kind

    def choice(self, options):
        return next(option for option in options if option.startswith(self._kind))


@pytest.fixture
def disk(tmp_path):
    return Disk(str(tmp_path / "disk"))


@pytest.fixture
def mount(disk):
    return Mount(disk, random.Random(1))


def write(mount, path, data, *, sync=False):
    fd = mount.open(path, create=True)
    size = os.fstat(fd).st_size
    mount.write_all(fd, [data], len(data), size)
    if sync:
        mount.fsync(fd)
    mount.close(fd)


def content(path):
    with open(path, "rb") as file:
        return file.read()


def test_what_is_written_is_there(disk, mount):
    path = os.path.join(disk.root, "file")
    write(mount, path, b"one")
    write(mount, path, b"two")
    mount.unplug()
    assert content(path) == b"onetwo"


def test_what_was_synced_survives_and_the_rest_does_not(disk, mount):
    path = os.path.join(disk.root, "file")
    write(mount, path, b"one", sync=True)
    mount.fsync_directory(disk.root)
    write(mount, path, b"two")
    write(mount, os.path.join(disk.root, "other"), b"data", sync=True)
    mount.unplug()
    disk.lose_power(Chance("everything"))
    assert content(path) == b"one"
    assert os.listdir(disk.root) == ["file"]


def test_a_truncation_that_was_not_synced_comes_back(disk, mount):
    path = os.path.join(disk.root, "file")
    write(mount, path, b"longer", sync=True)
    mount.fsync_directory(disk.root)
    fd = mount.open(path)
    mount.truncate(fd, 2)
    assert content(path) == b"lo"
    mount.unplug()
    disk.lose_power(Chance("everything"))
    assert content(path) == b"longer"


def test_a_torn_end(disk, mount):
    path = os.path.join(disk.root, "file")
    write(mount, path, b"synced", sync=True)
    mount.fsync_directory(disk.root)
    write(mount, path, b"x" * 100)
    disk.lose_power(Chance("a torn"))
    assert b"synced" + b"x" * 100 > content(path) >= b"synced"


def test_a_rename_that_was_not_synced_is_undone(disk, mount):
    mount.replace_file(os.path.join(disk.root, "file"), b"old")
    mount.replace_file(os.path.join(disk.root, "file"), b"new", sync=False)
    assert content(os.path.join(disk.root, "file")) == b"new"
    disk.lose_power(Chance("everything"))
    assert content(os.path.join(disk.root, "file")) == b"old"


def test_a_folder_takes_its_files_along(disk, mount):
    old, new = os.path.join(disk.root, "t-0"), os.path.join(disk.root, "t-0.deleted")
    mount.mkdir(old)
    write(mount, os.path.join(old, "log"), b"data", sync=True)
    mount.fsync_directory(old)
    mount.fsync_directory(disk.root)
    mount.rename(old, new)
    mount.fsync_directory(disk.root)
    disk.lose_power(Chance("everything"))
    assert content(os.path.join(new, "log")) == b"data"
    mount.remove_tree(new)
    mount.fsync_directory(disk.root)
    assert os.listdir(disk.root) == []


def test_a_new_folder_of_an_old_name_is_another_folder(disk, mount):
    folder = os.path.join(disk.root, "t-0")
    mount.mkdir(folder)
    write(mount, os.path.join(folder, "log"), b"old", sync=True)
    mount.fsync_directory(folder)
    mount.fsync_directory(disk.root)
    mount.rename(folder, os.path.join(disk.root, "t-0.deleted"))
    mount.mkdir(folder)
    write(mount, os.path.join(folder, "id"), b"new", sync=True)
    mount.fsync_directory(folder)
    disk.lose_power(Chance("everything"))
    assert os.listdir(folder) == ["log"]


def test_a_dead_process_changes_nothing(disk, mount):
    path = os.path.join(disk.root, "file")
    fd = mount.open(path, create=True)
    mount.unplug()
    mount.close(fd)
    with pytest.raises(OSError, match="dead"):
        mount.unlink(path)


def test_a_full_disk(disk, mount):
    path = os.path.join(disk.root, "file")
    fd = mount.open(path, create=True)
    disk.is_full = True
    with pytest.raises(OSError, match="space"):
        mount.pwritev(fd, [b"x"], 0)
    with pytest.raises(OSError, match="space"):
        mount.mkdir(os.path.join(disk.root, "folder"))
    disk.is_full = False
    assert mount.pwritev(fd, [b"x"], 0) == 1


def test_a_slow_disk_holds_up_who_writes(disk, mount):
    waits = []
    mount.stall = waits.append
    disk.is_slow = True
    write(mount, os.path.join(disk.root, "file"), b"x")
    assert waits
