"""One Spark session for all tests: it takes seconds to start."""

import os
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.broker_process import BrokerProcess

TIMEOUT = 900


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("spark") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(TIMEOUT))


def unavailable() -> str | None:
    """Why Spark cannot run here, or None. Fetches the connector if need be."""
    try:
        import pyspark  # noqa: F401
    except ImportError:
        return "pyspark is not installed: pip install '.[pipeline]' in a clone of Barnabas"
    from barnabas.pipeline.connector import default_packages, jars
    from barnabas.pipeline.errors import PipelineError

    try:
        jars(default_packages())
    except PipelineError as error:
        return str(error)
    return None


@pytest.fixture(scope="session")
def spark_is_here() -> Iterator[None]:
    """Skip where Spark cannot run. In CI (CI=true) that is a failure, with the same reason."""
    reason = unavailable()
    if reason:
        pytest.fail(reason) if os.environ.get("CI") == "true" else pytest.skip(reason)
    from tests.support import quick_spark

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_SUBMIT_OPTS", quick_spark.options())  # also for the processes that tests start
        yield


@pytest.fixture(scope="session")
def spark_settings(spark_is_here, tmp_path_factory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("spark")
    settings = {
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.driver.memory": "1g",
        # A query over a few rows is done before Spark has compiled code for it. The pipelines that tests run in
        # processes of their own (test_kills.py, test_cluster.py) are compiled.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    }
    return {"master": "local[2]", "settings": settings, "log": folder / "spark.log"}


@pytest.fixture(scope="session")
def _stopped_at_the_end():
    yield
    from barnabas.pipeline.session import current_session

    running = current_session()
    if running is not None:
        running.stop()


@pytest.fixture
def spark(spark_settings, _stopped_at_the_end):
    """The one session of all tests; another if a test before has stopped it, or its Java has died."""
    from barnabas.pipeline.session import spark_session

    return spark_session("tests", **spark_settings)


@pytest.fixture
def broker(tmp_path):
    """A broker of its own for every test: it is ready in less time than a test's topics would need to be cleaned up."""
    with BrokerProcess(tmp_path / "data") as running:
        yield running
