"""Java's Kafka clients, driven by the small programs in tests/java. Each prints one JSON object, which comes back."""

import json
from pathlib import Path
from typing import Any

from tests.support.apache_kafka import run_java

PROGRAMS = Path(__file__).parent.parent / "java"


def run_scenario(name: str, *arguments: str, timeout: float = 60) -> dict[str, Any]:
    """Run `tests/java/<name>.java` and return what it printed."""
    printed: dict[str, Any] = json.loads(run_java(PROGRAMS / f"{name}.java", *arguments, timeout=timeout).stdout)
    return printed
