"""The `barnabas` format, over logs that the storage layer itself wrote. Spark is not needed to read a part."""

import json
import os
import shutil
from datetime import UTC, datetime

import pytest

pytest.importorskip("numba")
pytest.importorskip("pyspark")

from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.types import StructType

from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.segments.source import SegmentDataSource, read_part
from barnabas.protocol.records.builder import NewRecord, build_batch
from barnabas.protocol.records.compression import CompressionType
from barnabas.protocol.records.control import ControlType
from barnabas.storage.config import LogConfig, TimestampType
from tests.pipeline.segments.support import SMALL_SEGMENTS, Directory, begin_transaction, end_transaction
from tests.storage.support import NOW, append, batch
from tests.support.effort import examples

COMMIT, ABORT = ControlType.COMMIT, ControlType.ABORT


@pytest.fixture
def directory(tmp_path):
    made = Directory(tmp_path)
    yield made
    made.close()


def test_a_record_has_the_columns_of_sparks_connector(directory):
    log = directory.log("orders-2")
    created = build_batch([NewRecord(1_700_000_000_123, b"k", b"v", [("h", b"1"), ("h", None)])])
    append(log, memoryview(created), now_ms=1_700_000_000_200)
    (row,) = directory.rows(includeHeaders=True)
    assert row == {
        "key": b"k",
        "value": b"v",
        "topic": "orders",
        "partition": 2,
        "offset": 0,
        "timestamp": datetime(2023, 11, 14, 22, 13, 20, 123000, tzinfo=UTC),
        "timestampType": 0,
        "headers": [{"key": "h", "value": b"1"}, {"key": "h", "value": None}],
    }


def test_without_being_asked_for_there_are_no_headers(directory):
    append(directory.log(), batch(b"v"))
    assert "headers" not in directory.rows()[0]


def test_null_keys_and_values_are_null(directory):
    append(directory.log(), memoryview(build_batch([NewRecord(0, None, None), NewRecord(0, b"", b"")])))
    assert [(row["key"], row["value"]) for row in directory.rows()] == [(None, None), (b"", b"")]


def test_log_append_time_is_the_brokers(directory):
    log = directory.log(config=LogConfig(message_timestamp_type=TimestampType.LOG_APPEND_TIME))
    append(log, batch(b"v", timestamp=5), now_ms=NOW)
    (row,) = directory.rows()
    assert (row["timestamp"].timestamp() * 1000, row["timestampType"]) == (NOW, 1)


def test_every_codec_and_a_change_of_codec_in_the_middle(directory):
    log = directory.log()
    for kind in CompressionType:
        append(log, batch(*(b"%s %d" % (kind.name.encode(), i) for i in range(50)), compression=kind))
    assert directory.values() == [b"%s %d" % (kind.name.encode(), i) for kind in CompressionType for i in range(50)]


def test_several_segments_are_several_parts(directory):
    log = directory.log(config=SMALL_SEGMENTS)
    for i in range(20):
        append(log, batch(b"%d" % i))
    assert len(directory.parts()) == len(directory.files(".log")) > 3
    assert directory.values() == [b"%d" % i for i in range(20)]


def test_a_long_segment_is_several_parts_by_its_index(directory):
    log = directory.log()
    for i in range(100):
        append(log, batch(b"%d" % i + bytes(1000)))
    directory.close()
    parts = directory.parts(maxPartitionBytes=10_000)
    assert 5 < len(parts) <= 11
    assert [row["offset"] for row in directory.rows(maxPartitionBytes=10_000)] == list(range(100))
    # While the log is in use, its index may be missing, or end in zeros.
    (index,) = directory.files(".index")
    index.write_bytes(index.read_bytes()[:40] + bytes(4000))
    assert len(directory.parts(maxPartitionBytes=10_000)) == 2
    assert [row["offset"] for row in directory.rows(maxPartitionBytes=10_000)] == list(range(100))
    index.unlink()
    assert len(directory.parts(maxPartitionBytes=10_000)) == 1


def test_a_batch_larger_than_a_chunk(directory, monkeypatch):
    monkeypatch.setattr("barnabas.pipeline.segments.batches.CHUNK_SIZE", 100)
    log = directory.log()
    append(log, batch(b"a"), batch(bytes(1000)), batch(b"b"), batch(b"c"))
    assert directory.values() == [b"a", bytes(1000), b"b", b"c"]


class TestChoosing:
    @pytest.fixture
    def directory(self, tmp_path):
        made = Directory(tmp_path)
        for name in ("a-0", "a-1", "b-0", "__consumer_offsets-0", "with-dashes-0"):
            log = made.log(name, SMALL_SEGMENTS)
            for i in range(9):
                append(log, batch(f"{name} {i}".encode()))
        os.mkdir(tmp_path / "empty-0")
        shutil.copytree(tmp_path / "a-0", tmp_path / f"a-5.{'0' * 32}-delete")
        shutil.copytree(tmp_path / "a-0", tmp_path / f"a-6.{'0' * 32}-stray")
        (tmp_path / "meta.properties").write_text("version=1\n")
        yield made
        made.close()

    def folders(self, directory, **options):
        return sorted({value.split()[0].decode() for value in directory.values(**options)})

    def test_everything_but_internal_topics_by_default(self, directory):
        assert self.folders(directory) == ["a-0", "a-1", "b-0", "with-dashes-0"]

    def test_topics(self, directory):
        assert self.folders(directory, subscribe="b, with-dashes") == ["b-0", "with-dashes-0"]
        assert self.folders(directory, subscribe="__consumer_offsets") == ["__consumer_offsets-0"]

    def test_partitions(self, directory):
        assert self.folders(directory, partitions="1") == ["a-1"]

    def test_a_range_of_offsets(self, directory):
        offsets = [row["offset"] for row in directory.rows(subscribe="b", startingOffsets=3, endingOffsets=7)]
        assert offsets == [3, 4, 5, 6]
        assert len(directory.parts(subscribe="b", startingOffsets=3, endingOffsets=5)) < len(
            directory.parts(subscribe="b")
        )

    def test_a_range_of_offsets_by_partition(self, directory):
        starting = json.dumps({"a": {"0": 7, "1": -2}})
        ending = json.dumps({"a": {"1": 2}})
        rows = directory.rows(subscribe="a", startingOffsets=starting, endingOffsets=ending)
        assert [(row["partition"], row["offset"]) for row in rows] == [(0, 7), (0, 8), (1, 0), (1, 1)]

    def test_a_range_inside_a_batch(self, directory):
        append(directory.log("c-0"), batch(*(b"c %d" % i for i in range(9))))
        assert directory.values(subscribe="c", startingOffsets=3, endingOffsets=5) == [b"c 3", b"c 4"]

    def test_a_range_in_which_nothing_is(self, directory):
        assert directory.rows(startingOffsets=1000) == []

    def test_deleted_records_stay_deleted(self, directory):
        (directory.path / "log-start-offset-checkpoint").write_text("0\n1\nb 0 7\n")
        assert directory.values(subscribe="b") == [b"b-0 7", b"b-0 8"]
        assert directory.values(subscribe="b", startingOffsets=0) == [b"b-0 7", b"b-0 8"]

    def test_columns_that_a_schema_names_in_its_order(self, directory):
        source = SegmentDataSource({"path": str(directory.path), "subscribe": "b"})
        reader = source.reader(StructType().add("offset", "long").add("value", "binary"))
        (first, *_) = reader.partitions()
        assert next(reader.read(first)).schema.names == ["offset", "value"]

    @pytest.mark.parametrize(
        ("options", "sentence"),
        [
            ({"subscribe": "nothing,a"}, "has no topic nothing"),
            (
                {"isolationLevel": "serializable"},
                "isolationLevel is read_committed or read_uncommitted, not serializable",
            ),
            ({"startingOffsets": "soon"}, r"startingOffsets is an offset, or offsets as .*, not soon"),
            ({"startingOffsets": "latest"}, "leaves nothing to read"),
            ({"partitions": "x"}, "partitions: x is not a number"),
            ({"topics": "a"}, "the barnabas format has no option topics; it has path, subscribe"),
            ({"path": "/nowhere"}, "/nowhere does not exist"),
            ({"path": "s3://bucket/data"}, "read from a local or mounted directory"),
            ({"path": ""}, "needs a data directory"),
        ],
    )
    def test_an_invalid_option_is_reported_in_a_sentence(self, directory, options, sentence):
        with pytest.raises(PipelineError, match=sentence):
            directory.rows(**options)

    @pytest.mark.parametrize("column", ["offset string", "colour string"])
    def test_an_unknown_column(self, directory, column):
        source = SegmentDataSource({"path": str(directory.path)})
        with pytest.raises(PipelineError, match=f"{column} is not among the columns: key binary, value binary"):
            source.reader(StructType().add(*column.split()))


class TestTransactions:
    def test_aborted_ones_are_left_out_and_markers_always(self, directory):
        log = directory.log()
        begin_transaction(log, b"kept")
        end_transaction(log, COMMIT)
        begin_transaction(log, b"gone", b"gone", sequence=1)
        append(log, batch(b"plain"))
        begin_transaction(log, b"of another", producer=2)
        end_transaction(log, ABORT)
        end_transaction(log, COMMIT, producer=2)
        assert directory.values() == [b"kept", b"plain", b"of another"]
        everything = [b"kept", b"gone", b"gone", b"plain", b"of another"]
        assert directory.values(isolationLevel="read_uncommitted") == everything

    def test_an_open_transaction_ends_the_read(self, directory):
        log = directory.log()
        append(log, batch(b"before"))
        begin_transaction(log, b"undecided")
        append(log, batch(b"after"))
        assert directory.values() == [b"before"]
        assert directory.values(isolationLevel="read_uncommitted") == [b"before", b"undecided", b"after"]

    @pytest.mark.parametrize(
        "lost", [[], [".txnindex"], [".snapshot"], [".index", ".txnindex"], [".index", ".snapshot"]]
    )
    def test_over_segments_and_whatever_a_crash_lost(self, directory, tmp_path_factory, lost):
        log = directory.log(config=SMALL_SEGMENTS)
        expected = []
        for i in range(12):
            begin_transaction(log, b"%d" % i, producer=i)
            append(log, batch(b"plain %d" % i))
            # Each ends some segments after it began.
            if i >= 4:
                end_transaction(log, ABORT if i % 3 == 0 else COMMIT, producer=i - 4)
        for i in range(8):
            expected += [] if (i + 4) % 3 == 0 else [b"%d" % i]
            expected += [b"plain %d" % i]
        last = log.segments.active.base_offset
        left_behind = Directory(tmp_path_factory.mktemp("copy"))
        shutil.copytree(directory.path, left_behind.path, dirs_exist_ok=True)
        for suffix in lost:
            for file in left_behind.files(suffix):
                # An index that is missing in the middle makes what the others say incomplete.
                if int(file.stem) >= last or ".index" in lost:
                    file.unlink()
        assert left_behind.values() == expected

    @settings(deadline=None, max_examples=examples(40))
    @given(
        st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["write", "plain", "commit", "abort", "roll"]))),
        st.booleans(),
    )
    def test_any_history_reads_as_the_log_itself_has_it(self, tmp_path_factory, history, closed):
        directory = Directory(tmp_path_factory.mktemp("data"))
        log = directory.log()
        sequences: dict[int, int] = {}
        for i, (producer, action) in enumerate(history):
            match action:
                case "write":
                    begin_transaction(log, b"%d" % i, producer=producer, sequence=sequences.get(producer, 0))
                    sequences[producer] = sequences.get(producer, 0) + 1
                case "plain":
                    append(log, batch(b"%d" % i))
                case "commit" | "abort":
                    end_transaction(log, COMMIT if action == "commit" else ABORT, producer=producer)
                case "roll":
                    if log.segments.active.size:
                        log.roll(NOW)
        stable = log.last_stable_offset
        aborted = log.aborted_transactions(0, stable)
        expected = []
        for row in directory.rows(isolationLevel="read_uncommitted"):
            action = history[int(row["value"])]
            gone = action[1] == "write" and any(
                one.producer_id == action[0] and one.first_offset <= row["offset"] <= one.last_offset for one in aborted
            )
            if row["offset"] < stable and not gone:
                expected.append(row["value"])
        if closed:
            directory.close()
        assert directory.values() == expected
        directory.close()


class TestDamage:
    def test_a_torn_tail_is_left_alone(self, directory):
        log = directory.log()
        append(log, batch(b"a"), batch(b"b"))
        (file,) = directory.files(".log")
        whole = file.read_bytes()
        for size in range(len(whole) // 2, len(whole)):
            os.truncate(file, size)
            assert directory.values() == [b"a"]
        file.write_bytes(whole + bytes(500))
        assert directory.values() == [b"a", b"b"]
        # Its length reached the disk, its bytes did not.
        file.write_bytes(whole[:-3] + bytes(3))
        assert directory.values() == [b"a"]

    def test_damage_before_the_end_is_an_error_that_names_the_file(self, directory):
        log = directory.log(config=SMALL_SEGMENTS)
        for i in range(20):
            append(log, batch(b"%d" % i))
        first, *_ = directory.files(".log")
        with first.open("r+b") as file:
            file.seek(-1, os.SEEK_END)
            file.write(b"\xff")
        with pytest.raises(PipelineError, match=rf"{first} is damaged at byte 0 or not far after it"):
            directory.values()

    def test_a_segment_that_retention_deletes_meanwhile_is_an_error(self, directory):
        append(directory.log(), batch(b"a"))
        (part,) = directory.parts()
        (file,) = directory.files(".log")
        file.rename(f"{file}.deleted")
        with pytest.raises(PipelineError, match=r"was deleted or replaced while it was read"):
            list(read_part(part, ["value"]))

    def test_a_compacted_segment_that_is_not_yet_renamed_counts(self, directory):
        log = directory.log(config=SMALL_SEGMENTS)
        for i in range(20):
            append(log, batch(b"%d" % i))
        directory.close()
        first, second, third, *_ = directory.files(".log")
        kept = second.read_bytes()
        swap = first.with_name(f"{first.name}.swap")
        swap.write_bytes(kept)
        offsets = [row["offset"] for row in directory.rows()]
        assert offsets == list(range(int(second.stem), 20))
        first.unlink()
        second.unlink()
        assert [row["offset"] for row in directory.rows()] == offsets
        assert int(third.stem) in offsets
