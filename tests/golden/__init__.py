"""Golden bytes: messages as Kafka's own Java classes serialise them.

`messages.jsonl.gz` was made by `Golden.java` with Apache Kafka 4.3.1. `python -m tests.golden` makes it again; the
result is the same as long as the program and Kafka's version are.
"""

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("messages.jsonl.gz")
PROGRAM = Path(__file__).with_name("Golden.java")


@dataclass(frozen=True)
class Sample:
    name: str
    version: int
    kind: str
    bytes: bytes
    values: dict[str, Any]


def samples() -> Iterator[Sample]:
    with gzip.open(FILE, "rt", encoding="utf-8") as lines:
        for line in lines:
            read = json.loads(line)
            yield Sample(read["name"], read["version"], read["kind"], bytes.fromhex(read["bytes"]), read["values"])
