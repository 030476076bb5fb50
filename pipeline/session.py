"""A Spark session that is ready for topics: with Java, the Kafka connector, and the `barnabas` format.

    spark = spark_session(master="local[2]", settings={"spark.sql.shuffle.partitions": "4"})
    read_topic(spark, "orders", bootstrap="127.0.0.1:9092").show()

What Java prints, and Spark logs, goes to a file (`log_file(spark)`), so that a terminal stays for what matters.
"""

import os
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pyspark
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from pipeline.connector import default_packages, jars
from pipeline.errors import PipelineError, SessionFailed
from pipeline.java import java_home
from pipeline.segments.source import SegmentDataSource

LOG_SETTING: Final = "spark.barnabas.log"

_LOG4J: Final = Path(__file__).with_name("log4j2.properties")

DEFAULTS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # A Python worker that crashes says where.
    "spark.python.worker.faulthandler.enabled": "true",
    "spark.sql.execution.pyspark.udf.faulthandler.enabled": "true",
}

# Where driver and executors are one process, whatever the machine's name resolves to is of no concern, and 200
# partitions after every shuffle are only overhead.
LOCAL_DEFAULTS: Final = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": str(os.cpu_count() or 2),
}

# The packages that executors of a cluster need and may not have.
_SHIPPED: Final = ("pipeline", "protocol")


def spark_session(
    app: str = "barnabas",
    *,
    master: str | None = None,
    settings: Mapping[str, str] | None = None,
    log: Path | str | None = None,
) -> SparkSession:
    """Start Spark, or give the session that this process has already.

    `master` is `local[*]` unless it is given here, in the settings or by spark-submit. `settings` are Spark's own and
    go over our defaults. `log` is the file for what Java prints; without it, a new one in the folder for temporary
    files.
    """
    running = SparkSession.getActiveSession()
    if running is not None:
        register(running)
        return running
    own = dict(settings or {})
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    if master is None and not submitted:
        master = own.get("spark.master", "local[*]")
    # Spark starts its Python workers with the python of the path, which may be another one.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    conf = SparkConf(loadDefaults=False)
    conf.setAppName(app)
    if master is not None:
        conf.setMaster(master)
    local = master is not None and master.startswith("local")
    for name, value in {**DEFAULTS, **(LOCAL_DEFAULTS if local else {}), **own}.items():
        conf.set(name, value)
    try:
        if not submitted:
            log = Path(log) if log is not None else new_log()
            _launch(conf, own, log)
        context = SparkContext.getOrCreate(conf)
    except PipelineError:
        raise
    except (PySparkRuntimeError, OSError) as error:
        raise SessionFailed(f"Spark did not start ({error}). What it said: {log}") from None
    except Exception as error:  # Py4J passes on whatever Java throws
        first_line = str(error).strip().splitlines()[-1] if str(error).strip() else type(error).__name__
        raise SessionFailed(f"Spark did not start on {master}: {first_line} What it said: {log}") from error
    if not local:
        context.addPyFile(str(shipped_packages()))
    spark = SparkSession.builder.getOrCreate()
    register(spark)
    return spark


def _launch(conf: SparkConf, own: Mapping[str, str], log: Path) -> None:
    """Start the JVM of this process, with its output in a file. A process has one, also for several sessions."""
    packages = [*default_packages(), *filter(None, own.get("spark.jars.packages", "").split(","))]
    needed = [str(jar) for jar in jars(packages, own)]
    conf.set("spark.jars", ",".join(filter(None, [*needed, own.get("spark.jars", "")])))
    # They are all there; spark-submit need not look for them again.
    conf.set("spark.jars.packages", "")
    if SparkContext._gateway is not None:
        return
    conf.set(LOG_SETTING, str(log))
    options = f"-Dlog4j2.configurationFile={_LOG4J.as_uri()} {own.get('spark.driver.extraJavaOptions', '')}".strip()
    conf.set("spark.driver.extraJavaOptions", options)
    os.environ["JAVA_HOME"] = str(java_home())
    os.environ.setdefault("SPARK_HOME", str(Path(pyspark.__file__).parent))
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        gateway = launch_gateway(conf, {"stdout": output, "stderr": output})  # type: ignore[no-untyped-call]
    SparkContext._ensure_initialized(gateway=gateway)


def new_log() -> Path:
    descriptor, name = tempfile.mkstemp(prefix="barnabas-spark-", suffix=".log")
    os.close(descriptor)
    return Path(name)


def log_file(spark: SparkSession) -> str | None:
    """Where Java's output goes; None in a session that was not started here."""
    return spark.sparkContext.getConf().get(LOG_SETTING)


def register(spark: SparkSession) -> None:
    """Teach a session, also one that was started otherwise, the `barnabas` format."""
    spark.dataSource.register(SegmentDataSource)


def shipped_packages() -> Path:
    """A zip of the packages that executors import, for clusters whose machines do not have them installed."""
    root = Path(__file__).parent.parent
    descriptor, name = tempfile.mkstemp(prefix="barnabas-", suffix=".zip")
    os.close(descriptor)
    with zipfile.ZipFile(name, "w", zipfile.ZIP_DEFLATED) as archive:
        for package in _SHIPPED:
            for file in sorted((root / package).rglob("*")):
                if file.is_file() and "__pycache__" not in file.parts:
                    archive.write(file, file.relative_to(root))
    return Path(name)
