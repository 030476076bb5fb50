"""The pytest plugin: a broker for tests, started when the first of them asks for one.

    def test_orders(kafka_broker, kafka_topic): ...

    @pytest.mark.kafka(num_partitions=3, log_retention_ms=1000)
    def test_with_settings(kafka_broker): ...

pytest finds it by its entry point and imports it in every run, so that it imports nothing itself before a test wants a
broker. Under pytest-xdist each worker is a session of its own, and has brokers of its own.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from barnabas.handle import Barnabas

_MARK: Final = "kafka"
_MARK_HELP: Final = (
    "kafka(settings={}, **settings): a broker with these settings, by Kafka's names, with underscores for dots as "
    "keywords; tests with equal settings share it"
)
_LINES_OF_LOG: Final = 200
_LINES_OF_JOURNAL: Final = 100

Settings = tuple[tuple[str, str], ...]


class Brokers:
    """The brokers of this session, one for each set of settings that a test asked for."""

    def __init__(self, common: dict[str, str]) -> None:
        self._common = common
        self._brokers: dict[Settings, Barnabas] = {}
        self._known: dict[Settings, Settings] = {}
        # Up to where the log and the journal of each belong to earlier tests.
        self._logged: dict[Settings, int] = {}
        self._marks: dict[Settings, int] = {}
        self.topics = count(1)

    def same(self, settings: Settings) -> Settings:
        """The one object that stands for these settings: pytest compares parameters by identity."""
        return self._known.setdefault(settings, settings)

    def get(self, settings: Settings) -> Barnabas:
        """The broker with these settings, started if there is none."""
        if settings not in self._brokers:
            from barnabas.handle import Barnabas

            self._brokers[settings] = Barnabas({**self._common, **dict(settings)}).start()
            self._logged[settings] = 0
        return self._brokers[settings]

    def test_begins(self) -> None:
        """Bring back brokers that a test has ended; note how much they logged, for a report of this test alone."""
        for settings, broker in self._brokers.items():
            if not broker.running:
                broker.start()
            self._logged[settings] = broker.log_size
            self._marks[settings] = _mark_of(broker)

    def reports(self) -> Iterator[tuple[str, str]]:
        """What the brokers have to say about this test, each with a title."""
        for settings, broker in self._brokers.items():
            lines = broker.log_from(self._logged[settings]).splitlines()
            name = f"Kafka broker {broker.bootstrap_servers}"
            if not broker.running:
                lines.append("(it is not running any more)")
            if lines:
                yield f"{name}: log", "\n".join(lines[-_LINES_OF_LOG:])
            journal = _journal_of(broker, self._marks.get(settings, 0))
            if journal:
                yield f"{name}: journal", "\n".join(journal)

    def stop(self) -> None:
        for broker in self._brokers.values():
            broker.stop()


def _mark_of(broker: Barnabas) -> int:
    """The number of the last entry of its journal."""
    from barnabas.errors import BarnabasError

    try:
        return broker.journal.mark()
    except BarnabasError:  # a test has ended it
        return 0


def _journal_of(broker: Barnabas, since: int) -> list[str]:
    from barnabas.errors import BarnabasError
    from barnabas.journal import line_of

    try:
        return [line_of(entry) for entry in broker.journal.entries(since=since, limit=_LINES_OF_JOURNAL)]
    except (BarnabasError, TimeoutError):
        return []


_BROKERS: Final = pytest.StashKey[Brokers]()


# --- settings ---


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("kafka", "a Kafka broker for tests")
    group.addoption(
        "--kafka-setting",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="a setting of every broker that tests start, with Kafka's name",
    )
    parser.addini("kafka_settings", "settings of every broker that tests start, a KEY=VALUE a line", type="linelist")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", _MARK_HELP)
    common: dict[str, str] = {}
    for assignment in [*config.getini("kafka_settings"), *config.getoption("--kafka-setting")]:
        name, equals, value = assignment.partition("=")
        if not equals:
            raise pytest.UsageError(f"{assignment!r} is not of the form KEY=VALUE, as a Kafka setting must be")
        common[name.strip()] = value.strip()
    config.stash[_BROKERS] = Brokers(common)


def pytest_unconfigure(config: pytest.Config) -> None:
    brokers = config.stash.get(_BROKERS, None)
    if brokers is not None:
        brokers.stop()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Let marked tests have a broker with their settings: it is the session's fixture with another parameter."""
    if "kafka_broker" not in metafunc.fixturenames:
        return
    marks = list(metafunc.definition.iter_markers(_MARK))
    if not marks:
        return
    settings = _settings_of(marks)
    name: Any = getattr(pytest, "HIDDEN_PARAM", None) or ",".join(f"{key}={value}" for key, value in settings)
    same = metafunc.config.stash[_BROKERS].same(settings)
    metafunc.parametrize("kafka_broker", [same], indirect=True, ids=[name], scope="session")


def _settings_of(marks: list[pytest.Mark]) -> Settings:
    """What the marks of a test, its class and its module say together; the closest one wins."""
    from barnabas.handle import setting_texts

    settings: dict[str, str] = {}
    for mark in reversed(marks):
        if len(mark.args) > 1 or not all(isinstance(each, dict) for each in mark.args):
            raise pytest.UsageError("@pytest.mark.kafka takes one mapping of settings, and settings as keywords")
        settings |= setting_texts(mark.args[0] if mark.args else None, mark.kwargs)
    return tuple(sorted(settings.items()))


# --- fixtures ---


@pytest.fixture(scope="session")
def kafka_broker(request: pytest.FixtureRequest) -> Barnabas:
    """A running broker, shared by the tests of this session that want the same settings."""
    return request.config.stash[_BROKERS].get(getattr(request, "param", ()))


@pytest.fixture
def kafka_topic(kafka_broker: Barnabas, request: pytest.FixtureRequest) -> Iterator[str]:
    """The name of a topic that is there, empty, and this test's own."""
    from barnabas.errors import BarnabasError

    number = next(request.config.stash[_BROKERS].topics)
    words = re.sub(r"[^A-Za-z0-9._-]+", "-", request.node.name).strip("-.")[:100]
    topic = kafka_broker.create_topic(f"{words}-{number}")
    yield topic
    with suppress(BarnabasError):  # the test did away with it, or with the broker
        kafka_broker.delete_topic(topic)


# --- reports ---


def pytest_runtest_setup(item: pytest.Item) -> None:
    if "kafka_broker" in getattr(item, "fixturenames", ()):
        item.config.stash[_BROKERS].test_begins()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed and "kafka_broker" in getattr(item, "fixturenames", ()):
        report.sections.extend(item.config.stash[_BROKERS].reports())
    return report
