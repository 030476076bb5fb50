"""Spark's Kafka connector and its Avro functions, in the version of the installed pyspark.

They are jars on Maven Central, and Spark downloads them itself. That takes seconds and a network, so it is done once:
the jars stay in the cache, and later sessions start from there, even without a network. Mirrors are set as for Spark
itself, by `spark.jars.ivySettings` or `spark.jars.repositories` in a session's settings.
"""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import pyspark

from barnabas.pipeline.cache import cache_directory
from barnabas.pipeline.errors import ConnectorMissing
from barnabas.pipeline.java import java_home

SCALA: Final = "2.13"

# Fewer and larger fetches make Spark read a topic about twice as fast.
KAFKA_OPTIONS: Final = {
    "kafka.max.poll.records": "10000",
    "kafka.max.partition.fetch.bytes": str(4 << 20),
    "kafka.receive.buffer.bytes": str(1 << 20),
}

# Some releases of the connector were published without this part. It has hardly changed since 4.0.0.
_TOKEN_PROVIDER: Final = f"org.apache.spark:spark-token-provider-kafka-0-10_{SCALA}"
_TOKEN_PROVIDER_VERSION: Final = "4.0.0"

_SURE: Final = "4.0.0"  # a pyspark whose connector is complete

_PASSED_ON: Final = ("spark.jars.ivySettings", "spark.jars.repositories")


def default_packages(version: str = pyspark.__version__) -> list[str]:
    return [
        f"org.apache.spark:spark-sql-kafka-0-10_{SCALA}:{version}",
        f"org.apache.spark:spark-avro_{SCALA}:{version}",
    ]


def with_default_packages(named: str) -> list[str]:
    """The packages of a session: those that its settings name, and ours unless they name another version."""
    own = [package.strip() for package in named.split(",") if package.strip()]
    chosen = {package.rpartition(":")[0] for package in own}
    return [*(package for package in default_packages() if package.rpartition(":")[0] not in chosen), *own]


def jars(packages: Sequence[str], settings: Mapping[str, str] | None = None) -> list[Path]:
    """The jars of these Maven packages and their dependencies, from the cache or downloaded now."""
    name = hashlib.sha256("\n".join(sorted(packages)).encode()).hexdigest()[:12]
    folder = cache_directory() / "spark-jars" / f"{pyspark.__version__}-{name}"
    folder.mkdir(parents=True, exist_ok=True)
    complete = folder / "complete"
    # Processes that start together would disturb each other in one Ivy folder: the first downloads, the others wait.
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not complete.exists():
            _fetch(folder, packages, settings or {})
            complete.touch()
    # Many dependencies are part of Spark itself and need not be sent to every executor.
    own = {jar.name for jar in (Path(pyspark.__file__).parent / "jars").iterdir()}
    return sorted(jar for jar in (folder / "jars").glob("*.jar") if jar.name.partition("_")[2] not in own)


def _fetch(folder: Path, packages: Sequence[str], settings: Mapping[str, str]) -> None:
    passed_on = {name: settings[name] for name in _PASSED_ON if name in settings}
    ours = default_packages()
    if _resolve(folder, packages, passed_on):
        return
    without = {**passed_on, "spark.jars.excludes": _TOKEN_PROVIDER}
    # Otherwise its own version of the client would be on the class path beside the connector's.
    alone = {**passed_on, "spark.jars.excludes": "org.apache.kafka:kafka-clients"}
    for version in versions(pyspark.__version__):
        older = dict(zip(ours, default_packages(version), strict=True))
        shutil.rmtree(folder / "jars", ignore_errors=True)  # from an incomplete attempt
        if _resolve(folder, [older.get(package, package) for package in packages], without):
            if _resolve(folder, [f"{_TOKEN_PROVIDER}:{_TOKEN_PROVIDER_VERSION}"], alone):
                return
            break
    raise ConnectorMissing(
        f"Spark's Kafka connector is needed and could not be downloaded from Maven Central: {', '.join(packages)}. Is "
        "there a network? A mirror can be named with the setting spark.jars.repositories; a machine without a network "
        f"can be given {folder} from one that has run a session before. If there is no connector for this pyspark "
        f"({pyspark.__version__}) yet, take one that has it: pip install pyspark=={_SURE}. What Spark said: "
        f"{folder / 'log'}"
    )


def versions(wanted: str) -> list[str]:
    """The versions to try: pyspark's own, then older ones of the same 4.x. Not all of them are published everywhere."""
    match = re.fullmatch(r"(\d+\.\d+)\.(\d+)", wanted)
    if match is None:
        return [wanted]
    return [f"{match[1]}.{patch}" for patch in range(int(match[2]), -1, -1)]


def _resolve(folder: Path, packages: Sequence[str], settings: Mapping[str, str]) -> bool:
    """Let Spark download packages into `folder` by running a program that does nothing."""
    home = Path(pyspark.__file__).parent
    options = {**settings, "spark.jars.packages": ",".join(packages), "spark.jars.ivy": str(folder)}
    with tempfile.NamedTemporaryFile("w", suffix=".py") as nothing, (folder / "log").open("a") as log:
        command = [str(home / "bin" / "spark-submit"), "--master", "local[1]"]
        command += [part for name, value in options.items() for part in ("--conf", f"{name}={value}")]
        environment = {**os.environ, "JAVA_HOME": str(java_home()), "SPARK_HOME": str(home)}
        done = subprocess.run(
            [*command, nothing.name],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    return done.returncode == 0
