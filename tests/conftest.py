"""Fixtures and hooks for all tests."""

import gc
import os
import signal
import threading
from collections.abc import Iterator

import pytest
import structlog
from hypothesis import settings

from tests.support import apache_kafka, franz_go, parallel, preparation
from tests.support.module_names import loaded_twice
from tests.support.temporary_files import TemporaryFiles

# Without deadlines: how long an example takes says more about the machine than about the code.
settings.register_profile("full", deadline=None)
settings.register_profile("quick", deadline=None, max_examples=10)
settings.load_profile("full")

# Thousands of tests stay in memory for the whole run. While they are collected there is no garbage, and afterwards the
# garbage collector need not visit them again (`pytest_collection_finish`).
gc.disable()

# What brokers log is read only where a test fails. Rich's pictures of tracebacks take more time than anything else.
structlog.configure(
    processors=[
        structlog.processors.add_log_level,
        structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback),
    ]
)

# A suite that is started in the background ignores SIGINT, and so would every process that it starts.
signal.signal(signal.SIGINT, signal.default_int_handler)


FILES = pytest.StashKey[TemporaryFiles]()


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # a worker has them from the process that started it
        config.stash[FILES] = files = TemporaryFiles(config.rootpath)
        files.begin()
        config.add_cleanup(files.end)


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    if FILES in session.config.stash:
        session.config.stash[FILES].is_kept = exitstatus == pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, exitstatus: int, config: pytest.Config) -> None:
    if exitstatus == pytest.ExitCode.TESTS_FAILED and config.stash[FILES].folder is not None:
        terminalreporter.write_line(f"the tests' temporary files are in {config.stash[FILES].folder}")


def pytest_collection_finish(session: pytest.Session) -> None:
    """Skip tests marked `java` or `go` where that is missing. In CI (CI=true) they run, and fail with the reason."""
    gc.freeze()
    gc.set_threshold(10_000)
    gc.enable()
    if session.config.option.collectonly:
        return
    for marker, unavailable in (("java", apache_kafka.unavailable), ("go", franz_go.unavailable)):
        items = [item for item in session.items if item.get_closest_marker(marker)]
        reason = unavailable() if items else None
        if reason and os.environ.get("CI") != "true":
            for item in items:
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: pytest.Config) -> None:
    """Called before workers start. A run of a part of the tests may need none of it."""
    if config.args_source is pytest.Config.ArgsSource.TESTPATHS and not config.option.markexpr:
        preparation.begin()


@pytest.fixture(scope="session", autouse=True)
def _no_module_has_two_names() -> Iterator[None]:
    yield
    assert loaded_twice() == {}


@pytest.fixture(scope="module", autouse=True)
def _no_client_is_left_behind() -> Iterator[None]:
    """A kafka-python client that nobody closed keeps looking for its broker, on a port that others get.

    It uses random numbers for that, which Hypothesis reports in whatever test runs then.
    """
    before = set(threading.enumerate())
    yield
    for thread in threading.enumerate():
        if thread not in before and thread.name.startswith("kafka-io-"):
            thread.join(10)
            assert not thread.is_alive(), f"{thread.name} was not closed"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    return parallel.workers(quick="not slow" in config.option.markexpr)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> parallel.Units:
    return parallel.Units(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: parallel.rank(item.nodeid))
