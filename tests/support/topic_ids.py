"""Topics of Apache Kafka under ids that it did not choose: those that they have in the groups of another broker."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from pathlib import Path

from barnabas.protocol.records.batch import read_header, seal


def topic_id(folder: Path) -> bytes:
    """The id of the topic that has this partition."""
    (line,) = (line for line in (folder / "partition.metadata").read_text().splitlines() if line.startswith("topic_id"))
    return urlsafe_b64decode(line.partition(": ")[2] + "==")


def replace_ids(data: Path, new: dict[bytes, bytes]) -> None:
    """In the data directory of a broker that is stopped: in its partitions, and in the metadata log of its cluster."""
    for path in data.glob("*/partition.metadata"):
        found = topic_id(path.parent)
        if found in new:
            path.write_text(f"version: 0\ntopic_id: {_text(new[found])}")
    for path in data.glob("__cluster_metadata-0/*.log"):
        log = bytearray(path.read_bytes())
        for old in new:
            log = log.replace(old, new[old])
        view = memoryview(log)
        position = 0
        while position < len(log):
            size = read_header(view, position).size
            seal(view[position : position + size])
            position += size
        path.write_bytes(log)


def _text(topic: bytes) -> str:
    return urlsafe_b64encode(topic).decode().rstrip("=")
