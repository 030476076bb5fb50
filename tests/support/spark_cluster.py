"""A real Spark standalone cluster from pyspark's own distribution: a master and workers, each a process of its own.

with SparkCluster(tmp_path, workers=2) as cluster:
    spark_session(master=cluster.master)
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Self

import pyspark

from barnabas.pipeline.java import java_home
from tests.support import quick_spark

SPARK_HOME = Path(pyspark.__file__).parent

LOGGING = """\
status = error
rootLogger.level = info
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_OUT
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d %p %c{1}: %m%n%ex
"""


class SparkCluster:
    def __init__(self, folder: Path, workers: int = 2) -> None:
        self.folder = folder
        self.workers = workers
        self.master = ""
        self._processes: list[subprocess.Popen[str]] = []
        (folder / "log4j2.properties").write_text(LOGGING)

    def __enter__(self) -> Self:
        try:
            master = self._start("master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
            self.master = self._wait_for(master, r"Starting Spark master at (spark://\S+)")
            for number in range(self.workers):
                worker = self._start(
                    "worker.Worker",
                    *("--host", "127.0.0.1", "--port", "0", "--webui-port", "0"),
                    *("--cores", "1", "--memory", "1g", "--work-dir", str(self.folder / f"worker-{number}")),
                    self.master,
                )
                self._wait_for(worker, r"(Successfully registered) with master")
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        # Workers first: they end their executors.
        for process in reversed(self._processes):
            process.terminate()
            process.wait(60)
            if process.stdout is not None:
                process.stdout.close()

    def _start(self, name: str, *arguments: str) -> subprocess.Popen[str]:
        logging = self.folder / "log4j2.properties"
        environment = {
            **os.environ,
            "JAVA_HOME": str(java_home()),
            "SPARK_HOME": str(SPARK_HOME),
            "SPARK_LOCAL_DIRS": str(self.folder / "local"),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": f"{quick_spark.options()} -Dlog4j2.configurationFile={logging.as_uri()}",
        }
        process = subprocess.Popen(
            [SPARK_HOME / "bin" / "spark-class", f"org.apache.spark.deploy.{name}", *arguments],
            cwd=self.folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._processes.append(process)
        return process

    def _wait_for(self, process: subprocess.Popen[str], pattern: str) -> str:
        """The word that a process prints when it is ready. What it prints later is little: the pipe has room for it."""
        assert process.stdout is not None
        printed = []
        for line in process.stdout:
            printed.append(line)
            found = re.search(pattern, line)
            if found:
                return found[1]
        raise RuntimeError("it ended instead:\n" + "".join(printed))
