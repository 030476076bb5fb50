"""python -m tests.support.preparation: prepare what the tests need from Java, Go and npm.

A run of all tests begins with it, while its workers still collect their tests. CI does it sooner, while it compiles.

The first run on a machine downloads Apache Kafka (two versions) and Spark's connector, makes archives of classes,
and builds a program in Go. Tests that need one of them before it is there wait for it (`tests/support/cache.py`).
"""

from contextlib import suppress
from threading import Thread

from barnabas.pipeline.errors import PipelineError
from tests.support import apache_kafka, axe, franz_go, zookeeper
from tests.support.apache_kafka import JavaError, JavaUnavailableError
from tests.support.franz_go import GoUnavailableError


def prepare_axe() -> None:
    if axe.MISSING is None:
        with suppress(axe.AxeUnavailable):
            axe.script()


def begin() -> None:
    Thread(target=prepare, daemon=True).start()


def prepare() -> None:
    """Say nothing if something is missing: the tests that need it say so."""
    prepare_axe()
    prepare_java()
    with suppress(GoUnavailableError):
        franz_go.program()


def prepare_java() -> None:
    try:
        apache_kafka.java()
        apache_kafka.libraries()
        apache_kafka.class_archive()
        _prepare_spark()
        apache_kafka.libraries(zookeeper.KAFKA)
        apache_kafka.libraries(apache_kafka.STREAMS)
    except (ImportError, JavaError, JavaUnavailableError, PipelineError):
        return


def _prepare_spark() -> None:
    from barnabas.pipeline.connector import default_packages, jars
    from tests.support import quick_spark

    jars(default_packages())
    quick_spark.class_archive()


if __name__ == "__main__":
    prepare()
