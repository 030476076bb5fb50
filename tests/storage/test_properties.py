"""barnabas.storage.properties"""

import uuid
from pathlib import Path

import pytest

from barnabas.storage.errors import CorruptFile
from barnabas.storage.filesystem import FileSystem
from barnabas.storage.properties import (
    MetaProperties,
    decode_id,
    encode_id,
    read_topic_id,
    write_clean_shutdown,
    write_topic_id,
)

TOPIC_ID = uuid.UUID("cac1115d-2cec-44f1-b15f-35b5969a9478")


def test_ids_as_kafka_writes_them() -> None:
    assert encode_id(TOPIC_ID) == "ysERXSzsRPGxXzW1lpqUeA"
    assert decode_id("ysERXSzsRPGxXzW1lpqUeA") == TOPIC_ID


@pytest.mark.parametrize("text", ["", "short", "ysERXSzsRPGxXzW1lpqUe!", "ysERXSzsRPGxXzW1lpqUeAAA"])
def test_invalid_ids(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        decode_id(text)


def test_meta_properties_that_apache_kafka_wrote(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text(
        "#\n#Mon Nov 16 02:32:07 UTC 2026\nnode.id=1\ndirectory.id=Bt-IogykQWmN2lZau0ol6Q\nversion=1\n"
        "cluster.id=MkU3OEVBNTcwNTJENDM2Qg\n"
    )
    assert MetaProperties.read(str(tmp_path)) == MetaProperties(
        "MkU3OEVBNTcwNTJENDM2Qg", 1, uuid.UUID("06df88a2-0ca4-4169-8dda-565abb4a25e9")
    )


def test_meta_properties_there_and_back(tmp_path: Path) -> None:
    assert MetaProperties.read(str(tmp_path)) is None
    properties = MetaProperties("cluster", 7, uuid.uuid4())
    properties.write(str(tmp_path), FileSystem())
    assert MetaProperties.read(str(tmp_path)) == properties


@pytest.mark.usefixtures("leaves_damage")
@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "no version"),
        ("version=0\n", "version 0, but only version 1 can be read"),
        ("version=1\ncluster.id=c\nnode.id=1\n", "no directory.id"),
        ("version=1\nnonsense\n", "the line 'nonsense' has no '='"),
        ("version=1\ncluster.id=c\nnode.id=x\n", "a value cannot be read: .*'x'"),
    ],
)
def test_meta_properties_that_lack_something(tmp_path: Path, text: str, what: str) -> None:
    (tmp_path / "meta.properties").write_text(text)
    with pytest.raises(CorruptFile, match=f"meta.properties: {what}"):
        MetaProperties.read(str(tmp_path))


def test_the_topic_id_as_kafka_writes_it(tmp_path: Path) -> None:
    assert read_topic_id(str(tmp_path)) is None
    write_topic_id(str(tmp_path), TOPIC_ID, FileSystem())
    assert (tmp_path / "partition.metadata").read_text() == "version: 0\ntopic_id: ysERXSzsRPGxXzW1lpqUeA"
    assert read_topic_id(str(tmp_path)) == TOPIC_ID


@pytest.mark.parametrize("text", ["", "version: 1\ntopic_id: ysERXSzsRPGxXzW1lpqUeA", "version: 0\ntopic_id: x"])
def test_an_invalid_topic_id(tmp_path: Path, text: str) -> None:
    (tmp_path / "partition.metadata").write_text(text)
    with pytest.raises(CorruptFile):
        read_topic_id(str(tmp_path))


def test_the_mark_of_a_clean_stop(tmp_path: Path) -> None:
    write_clean_shutdown(str(tmp_path), 13, FileSystem())
    assert (tmp_path / ".kafka_cleanshutdown").read_text() == '{"version":0,"brokerEpoch":13}'
