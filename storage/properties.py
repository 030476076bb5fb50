"""The files that describe a folder: `meta.properties`, `partition.metadata` and `.kafka_cleanshutdown`.

Ids are written like Kafka's: the 16 bytes of a UUID in URL-safe base64 without padding.
"""

import base64
import json
import os
import uuid
from typing import Final, NamedTuple

from barnabas.storage.errors import CorruptFile
from barnabas.storage.filesystem import FileSystem

META_PROPERTIES: Final = "meta.properties"
PARTITION_METADATA: Final = "partition.metadata"
CLEAN_SHUTDOWN: Final = ".kafka_cleanshutdown"

_META_PROPERTIES_VERSION: Final = "1"
_PARTITION_METADATA_VERSION: Final = "0"


def encode_id(value: uuid.UUID) -> str:
    return base64.urlsafe_b64encode(value.bytes).rstrip(b"=").decode()


def decode_id(text: str) -> uuid.UUID:
    """Raises ValueError if it is not an id."""
    return uuid.UUID(bytes=base64.b64decode(text + "==", altchars=b"-_", validate=True))


class MetaProperties(NamedTuple):
    """Identifies the owner of a data directory."""

    cluster_id: str
    node_id: int
    directory_id: uuid.UUID

    @classmethod
    def read(cls, folder: str) -> "MetaProperties | None":
        path = os.path.join(folder, META_PROPERTIES)
        properties = _read_properties(path, separator="=")
        if properties is None:
            return None
        _check_version(path, properties, _META_PROPERTIES_VERSION)
        try:
            return cls(properties["cluster.id"], int(properties["node.id"]), decode_id(properties["directory.id"]))
        except (KeyError, ValueError) as error:
            raise _malformed(path, error) from None

    def write(self, folder: str, file_system: FileSystem) -> None:
        text = (
            f"version={_META_PROPERTIES_VERSION}\n"
            f"cluster.id={self.cluster_id}\n"
            f"node.id={self.node_id}\n"
            f"directory.id={encode_id(self.directory_id)}\n"
        )
        file_system.replace_file(os.path.join(folder, META_PROPERTIES), text.encode())


def read_topic_id(folder: str) -> uuid.UUID | None:
    """The topic id from a partition's folder."""
    path = os.path.join(folder, PARTITION_METADATA)
    properties = _read_properties(path, separator=":")
    if properties is None:
        return None
    _check_version(path, properties, _PARTITION_METADATA_VERSION)
    try:
        return decode_id(properties["topic_id"])
    except (KeyError, ValueError) as error:
        raise _malformed(path, error) from None


def write_topic_id(folder: str, topic_id: uuid.UUID, file_system: FileSystem, *, sync: bool = True) -> None:
    text = f"version: {_PARTITION_METADATA_VERSION}\ntopic_id: {encode_id(topic_id)}"
    file_system.replace_file(os.path.join(folder, PARTITION_METADATA), text.encode(), sync=sync)


def write_clean_shutdown(folder: str, broker_epoch: int, file_system: FileSystem) -> None:
    """Record that everything is on disk. The very last step of a clean shutdown."""
    text = json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":"))
    file_system.replace_file(os.path.join(folder, CLEAN_SHUTDOWN), text.encode())


def _check_version(path: str, properties: dict[str, str], expected: str) -> None:
    if "version" not in properties:
        raise CorruptFile(f"{path}: no version")
    if properties["version"] != expected:
        raise CorruptFile(f"{path}: version {properties['version']}, but only version {expected} can be read")


def _malformed(path: str, error: Exception) -> CorruptFile:
    if isinstance(error, KeyError):
        return CorruptFile(f"{path}: no {error.args[0]}")
    return CorruptFile(f"{path}: a value cannot be read: {error}")


def _read_properties(path: str, separator: str) -> dict[str, str] | None:
    try:
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        raise CorruptFile(f"{path}: not text") from None
    properties = {}
    for line in lines:
        if line.strip() and not line.startswith("#"):
            key, found, value = line.partition(separator)
            if not found:
                raise CorruptFile(f"{path}: the line {line!r} has no {separator!r}")
            properties[key.strip()] = value.strip()
    return properties
