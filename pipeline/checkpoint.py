"""A pipeline's checkpoint: a folder with a Spark checkpoint per query, and `pipeline.json`, which names its owner.

The identity in it names the pipeline's markers on the broker. So a checkpoint and its markers belong together:
after the folder is deleted, the pipeline starts from the beginning under a new identity.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlparse

from barnabas.pipeline.errors import PipelineError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FILE: Final = "pipeline.json"


@dataclass
class Identity:
    pipeline: str
    cluster: str
    id: str = field(default_factory=lambda: uuid.uuid4().hex[:12])
    schemas: dict[str, str] = field(
        default_factory=dict
    )  # inferred ones: a pipeline keeps the schema that it started with

    def query(self, name: str) -> str:
        """The name of an exactly-once query on the broker."""
        return f"{self.pipeline}-{name}-{self.id}"


class CheckpointFull(PipelineError):
    """The checkpoint's disk is full."""

    def __init__(self, location: str) -> None:
        super().__init__(
            f"there is no room left on the disk of the checkpoint {location}; make some, or move the folder and change "
            "`checkpoint` in the file. Nothing is lost: the pipeline continues where it stopped"
        )


class Checkpoint:
    """`location` is a path, or a URL that Spark's file systems understand (hdfs://, s3a://): then Spark reads it."""

    def __init__(self, location: str) -> None:
        self.location = location.rstrip("/")
        self.local = local_path(location)

    def identity(self, spark: SparkSession | None = None) -> Identity | None:
        text = self._read(spark)
        if text is None:
            return None
        try:
            return Identity(**json.loads(text))
        except (ValueError, TypeError):
            raise PipelineError(
                f"{self.location}/{_FILE} is damaged; is {self.location} a pipeline's checkpoint?"
            ) from None

    def check(self, pipeline: str, cluster: str, spark: SparkSession | None = None) -> Identity:
        """The identity to run under: the existing one if it belongs to this pipeline, or a new one."""
        found = self.identity(spark)
        if found is None:
            if self.local is not None and self.local.is_dir() and any(self.local.glob("*/metadata")):
                raise PipelineError(
                    f"{self.location} holds Spark checkpoints that are not a Barnabas pipeline's; give this pipeline "
                    "another `checkpoint`, or remove that folder"
                )
            return Identity(pipeline, cluster)
        if found.pipeline != pipeline:
            raise PipelineError(
                f"the checkpoint {self.location} belongs to the pipeline {found.pipeline!r}, and this one is "
                f"{pipeline!r}; give it a `checkpoint` of its own, or remove that folder to start from the beginning"
            )
        if found.cluster != cluster:
            raise PipelineError(
                f"the checkpoint {self.location} was made with another cluster ({found.cluster}; this one is "
                f"{cluster}), whose offsets mean nothing here; give the pipeline another `checkpoint`, or remove that "
                "folder to start from the beginning"
            )
        return found

    def save(self, identity: Identity, spark: SparkSession | None = None) -> None:
        text = json.dumps(asdict(identity), indent=2)
        if self.local is None:
            _write_remote(_session(spark), f"{self.location}/{_FILE}", text)
            return
        beside = self.local / f"{_FILE}.{os.getpid()}"
        try:
            self.local.mkdir(parents=True, exist_ok=True)
            with beside.open("w") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(self.local / _FILE)
        except OSError as error:
            beside.unlink(missing_ok=True)
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise CheckpointFull(self.location) from None
            raise PipelineError(f"the checkpoint {self.location} cannot be written: {error.strerror}") from None

    @contextmanager
    def held(self) -> Iterator[None]:
        """Allow one run at a time on this machine."""
        if self.local is None:
            yield
            return
        try:
            self.local.mkdir(parents=True, exist_ok=True)
            lock = os.open(self.local / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise CheckpointFull(self.location) from None
            raise PipelineError(f"the checkpoint {self.location} cannot be written: {error.strerror}") from None
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise PipelineError(
                    f"another run of this pipeline uses the checkpoint {self.location}; stop it first"
                ) from None
            yield
        finally:
            os.close(lock)

    def _read(self, spark: SparkSession | None) -> str | None:
        if self.local is None:
            return _read_remote(_session(spark), f"{self.location}/{_FILE}")
        try:
            return (self.local / _FILE).read_text()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise PipelineError(f"the checkpoint {self.location} cannot be read: {error.strerror}") from None


def local_path(location: str) -> Path | None:
    if location.startswith("file:"):
        return Path(unquote(urlparse(location).path))
    return None if "://" in location else Path(location)


def _session(spark: SparkSession | None) -> SparkSession:
    if spark is None:
        raise PipelineError("a checkpoint outside this machine's files can only be read with Spark running")
    return spark


def _read_remote(spark: SparkSession, path: str) -> str | None:
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    place = jvm.org.apache.hadoop.fs.Path(path)
    files = place.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())
    if not files.exists(place):
        return None
    stream = files.open(place)
    try:
        return str(jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
    finally:
        stream.close()


def _write_remote(spark: SparkSession, path: str, text: str) -> None:
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    place = jvm.org.apache.hadoop.fs.Path(path)
    files = place.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())
    stream = files.create(place, True)
    try:
        stream.write(bytearray(text.encode()))
    finally:
        stream.close()
