"""A Spark session that is ready for topics: with Java, the Kafka connector, and the `barnabas` format.

    spark = spark_session(master="local[2]", settings={"spark.sql.shuffle.partitions": "4"})
    read_topic(spark, "orders", bootstrap="127.0.0.1:9092").show()

Output of Java and Spark's log go to a file (`log_file(spark)`), not to the terminal.
"""

import hashlib
import io
import os
import sys
import tempfile
import threading
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import pyspark
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from barnabas.pipeline.cache import cache_directory
from barnabas.pipeline.connector import jars, with_default_packages
from barnabas.pipeline.errors import PipelineError, SessionFailed
from barnabas.pipeline.failures import append_to_log, gist
from barnabas.pipeline.java import java_home
from barnabas.pipeline.segments.source import SegmentDataSource

LOG_SETTING: Final = "spark.barnabas.log"

_LOG4J: Final = Path(__file__).with_name("log4j2.properties")

DEFAULTS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # Makes a crashing Python worker say where.
    "spark.python.worker.faulthandler.enabled": "true",
    "spark.sql.execution.pyspark.udf.faulthandler.enabled": "true",
}

# Where driver and executors are one process, the machine's host name does not matter, and 200 partitions after every
# shuffle are only overhead.
LOCAL_DEFAULTS: Final = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": str(os.cpu_count() or 2),
}

# The parts of `barnabas` that executors of a cluster need and may not have.
_SHIPPED: Final = ("__init__.py", "pipeline", "protocol")


# The contexts that were started for runs of pipelines, and how many runs use each.
_runs: dict[SparkContext, int] = {}
_one_at_a_time = threading.RLock()
_log_of_java: Path | None = None


def spark_session(
    app: str = "barnabas",
    *,
    master: str | None = None,
    settings: Mapping[str, str] | None = None,
    log: Path | str | None = None,
) -> SparkSession:
    """Start Spark, or return the session that this process already has. A session whose Java has died is replaced.

    `master` is `local[*]` unless it is given here, in the settings or by spark-submit. `settings` are Spark's own and
    override our defaults. `log` is the file for Java's output; by default a new temporary file.
    """
    with _one_at_a_time:
        spark = current_session()
        if spark is None:
            return _start(app, master, dict(settings or {}), log)
        register(spark)
        return spark


@contextmanager
def session_for_run(app: str, *, master: str | None, settings: Mapping[str, str]) -> Iterator[SparkSession]:
    """The session that this process has, or one that ends with the last run that uses it."""
    with _one_at_a_time:
        found = current_session()
        spark = spark_session(app, master=master, settings=settings)
        context = spark.sparkContext
        if found is None:
            _runs[context] = 0
        if context in _runs:
            _runs[context] += 1
    try:
        yield spark
    finally:
        with _one_at_a_time:
            if context in _runs:
                _runs[context] -= 1
                if _runs[context] == 0:
                    del _runs[context]
                    with suppress(Exception), warnings.catch_warnings():  # Java may be gone, which was already reported
                        warnings.simplefilter("ignore")
                        spark.stop()


def is_submitted() -> bool:
    """Whether spark-submit started this process and so decides where Spark runs."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def current_session() -> SparkSession | None:
    """The session of this process, whichever thread created it, if its Java is alive."""
    _forget_dead_java()
    if SparkContext._active_spark_context is None:
        return None
    # The active session is per thread; the default one is the process's first.
    return SparkSession.getActiveSession() or SparkSession._instantiatedSession


def _forget_dead_java() -> None:
    """Drop a Java that has ended and its stopped context: pyspark would keep them forever."""
    gateway, context = SparkContext._gateway, SparkContext._active_spark_context
    if gateway is None:
        return
    dead = gateway.proc is not None and gateway.proc.poll() is not None
    if not dead and (context is None or not _is_stopped(context)):
        return
    with suppress(Exception), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if context is not None:
            context.stop()
    SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = SparkSession._activeSession = None
    if dead:
        with suppress(Exception):
            gateway.shutdown()
        SparkContext._gateway = SparkContext._jvm = None


def _is_stopped(context: SparkContext) -> bool:
    return context._jsc is None or bool(context._jsc.sc().isStopped())


def _start(app: str, master: str | None, own: dict[str, str], log: Path | str | None) -> SparkSession:
    submitted = is_submitted()
    if master is None and not submitted:
        master = own.get("spark.master", "local[*]")
    # Otherwise Spark starts its Python workers with the python on the path, which may be another one.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    conf = SparkConf(loadDefaults=False)
    conf.setAppName(app)
    if master is not None:
        conf.setMaster(master)
    local_defaults = LOCAL_DEFAULTS if master is not None and _is_local(master) else {}
    for name, value in {**DEFAULTS, **local_defaults, **own}.items():
        conf.set(name, value)
    try:
        if not submitted:
            _launch(conf, own, Path(log) if log is not None else None)
        context = SparkContext.getOrCreate(conf)
        # The server that receives Java's accumulator updates would print a traceback when Java disconnects.
        context._accumulatorServer.handle_error = lambda request, client_address: None  # type: ignore[method-assign]
        spark = SparkSession.builder.getOrCreate()
        register(spark)
        return spark
    except PipelineError:
        raise
    except Exception as error:  # Py4J re-raises whatever Java throws
        text = f"{type(error).__name__}: {error}"
        if SparkContext._active_spark_context is not None:
            SparkContext._active_spark_context.stop()
        if _log_of_java is not None and "JAVA_GATEWAY_EXITED" in text:
            text = _log_of_java.read_text(errors="replace")
        append_to_log(_log_of_java, text)
        why = gist(text)
        if "stopped SparkContext" in text or "masters are unresponsive" in text:
            why = "no Spark master answers there"
        raise SessionFailed(
            f"Spark did not start on {master}: {why.rstrip('.')}. What it said: {_log_of_java}"
        ) from error


def _launch(conf: SparkConf, own: Mapping[str, str], log: Path | None) -> None:
    """Start the JVM of this process, with its output in a file. A process has one JVM, even for several sessions."""
    global _log_of_java
    needed = [str(jar) for jar in jars(with_default_packages(own.get("spark.jars.packages", "")), own)]
    conf.set("spark.jars", ",".join(filter(None, [*needed, own.get("spark.jars", "")])))
    # The jars are all there; spark-submit need not resolve them again.
    conf.set("spark.jars.packages", "")
    if SparkContext._gateway is not None:
        if _log_of_java is not None:
            conf.set(LOG_SETTING, str(_log_of_java))
        return
    log = _log_of_java = log or new_log()
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
    """Register the `barnabas` format in a session, including one that was started elsewhere."""
    ship(spark.sparkContext)
    spark.dataSource.register(SegmentDataSource)


def ship(context: SparkContext) -> None:
    """Send the packages that executors import to a cluster, whose machines may not have them."""
    if not _is_local(context.master or ""):
        # Its name contains a hash of its content, so it is sent once and never collides with another version's.
        archive = shipped_packages()
        if archive.name not in (context._python_includes or ()):
            context.addPyFile(str(archive))


def _is_local(master: str) -> bool:
    return master.startswith("local")


def shipped_packages() -> Path:
    """A zip of what executors import of `barnabas`."""
    root = Path(__file__).parent.parent
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for part in _SHIPPED:
            for file in sorted((root / part).rglob("*")) if (root / part).is_dir() else [root / part]:
                if file.is_file() and "__pycache__" not in file.parts:
                    # Without a time stamp: the same content gives the same archive.
                    name = f"barnabas/{file.relative_to(root).as_posix()}"
                    archive.writestr(zipfile.ZipInfo(name), file.read_bytes())
    digest = hashlib.sha256(content.getvalue()).hexdigest()[:12]
    path = cache_directory() / "shipped" / f"barnabas-{digest}.zip"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_suffix(f".{os.getpid()}")
        beside.write_bytes(content.getvalue())
        beside.rename(path)
    return path
