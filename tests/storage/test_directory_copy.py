import os
import uuid

import pytest

from barnabas.protocol.topic_partition import TopicPartition
from barnabas.storage.config import LogConfig
from barnabas.storage.directory_copy import UnsyncedFileSystem, copy_directory, copy_of_copy
from barnabas.storage.log_directory import LogDirectory
from tests.storage import support
from tests.storage.support import batch, found_max_timestamp, read_all, values_of

T = TopicPartition("t", 0)
CONFIG = LogConfig(segment_bytes=4096, index_interval_bytes=100)


def opened(path):
    return LogDirectory(str(path), node_id=1, config_of=lambda _: CONFIG, now_ms=0)


@pytest.fixture
def directory(tmp_path):
    directory = opened(tmp_path / "data")
    yield directory
    directory.abandon()


def append(log, *values, **fields):
    support.append(log, *(batch(value, **fields) for value in values))


def test_a_copy_is_what_a_clean_stop_would_have_left(directory, tmp_path):
    log = directory.create_log(T, uuid.uuid4(), CONFIG, 0)
    log.assign_leader_epoch(0)
    append(log, *(b"%d" % number + bytes(500) for number in range(20)), timestamp=1000)
    assert len(log.segments) > 2
    log.increment_log_start_offset(3)
    copy_directory(directory, str(tmp_path / "copy"))
    append(log, b"later")  # continues as if nothing had happened
    assert log.end_offset == 21

    copy = opened(tmp_path / "copy")
    copied = copy.logs[T]
    assert copy.was_clean
    assert (copied.log_start_offset, copied.high_watermark, copied.end_offset) == (3, 20, 20)
    assert (copied.topic_id, copied.leader_epochs.entries) == (log.topic_id, log.leader_epochs.entries)
    assert [value[:-500] for value in values_of(read_all(copied))][-1] == b"19"
    assert found_max_timestamp(copied).timestamp == 1000
    copy.close()


def test_complete_segments_are_linked_and_the_active_one_is_copied(directory, tmp_path):
    log = directory.create_log(T, uuid.uuid4(), CONFIG, 0)
    append(log, *(bytes(1500) for _ in range(6)))
    copy_directory(directory, str(tmp_path / "copy"))
    copy_of_copy(str(tmp_path / "copy"), str(tmp_path / "use"))
    names = sorted(name for name in os.listdir(log.folder) if name.endswith(".log"))
    assert len(names) > 1
    for folder in ("copy", "use"):
        linked = [os.path.samefile(f"{log.folder}/{name}", tmp_path / folder / "t-0" / name) for name in names]
        assert linked == [True] * (len(names) - 1) + [False]


def test_what_is_done_with_a_copy_of_it_does_not_reach_a_copy(directory, tmp_path):
    log = directory.create_log(T, uuid.uuid4(), CONFIG, 0)
    append(log, *(b"%d" % number + bytes(1500) for number in range(6)))
    copy_directory(directory, str(tmp_path / "copy"))
    for _ in range(2):
        copy_of_copy(str(tmp_path / "copy"), str(tmp_path / "use"))
        use = opened(tmp_path / "use")
        assert use.logs[T].end_offset == 6
        append(use.logs[T], *(b"more" + bytes(1500) for _ in range(6)))
        use.logs[T].delete_segments(list(use.logs[T].segments)[:2], 0).run()
        use.close()
        UnsyncedFileSystem().remove_tree(str(tmp_path / "use" / "t-0"))


def test_producers_are_known_in_a_copy(directory, tmp_path):
    log = directory.create_log(T, uuid.uuid4(), CONFIG, 0)
    append(log, b"a", producer_id=7, producer_epoch=0, base_sequence=0)
    copy_directory(directory, str(tmp_path / "copy"))
    copy = opened(tmp_path / "copy")
    assert copy.logs[T].producer_state.producers.keys() == {7}
    copy.close()


def test_an_empty_log_is_copied_too(directory, tmp_path):
    directory.create_log(T, uuid.uuid4(), CONFIG, 0)
    copy_directory(directory, str(tmp_path / "copy"))
    copy = opened(tmp_path / "copy")
    assert copy.logs[T].end_offset == 0
    copy.close()
