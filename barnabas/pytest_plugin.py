"""The pytest plugin: a broker for tests, started when the first test asks for it.

    def test_orders(kafka_broker, kafka_topic): ...

    @pytest.mark.kafka(num_partitions=3, log_retention_ms=1000)
    def test_with_settings(kafka_broker): ...

Each test starts clean: faults from earlier tests are removed, the clock is reset, and the journal shows only what
happens from now on. What a wider-scoped fixture does to the broker stays until that fixture ends.

pytest finds the plugin by its entry point and imports it in every run, so the plugin imports nothing until a test needs
a broker. Under pytest-xdist each worker is a separate session with its own brokers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Iterator
from contextlib import suppress
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from barnabas.control import ControlClient
    from barnabas.handle import Barnabas

_MARK: Final = "kafka"
_MARK_HELP: Final = (
    "kafka(settings={}, brokers=1, security=None, users={}, acls=None, **settings): a broker, or a cluster of several, "
    "with these settings, by Kafka's names, with underscores for dots as keywords; security is ssl, sasl_plaintext or "
    "sasl_ssl, users are names with passwords, and acls rules about what they may do; tests with equal "
    "settings share it"
)
_SHARED_MARK: Final = "kafka_shared"
_SHARED_MARK_HELP: Final = (
    "kafka_shared: the tests of this class or module share the broker's faults, clock and journal, and only the first "
    "of them starts clean; a function with this mark continues where the previous test ended"
)
_CLEAN_HELP: Final = "whether each test starts without faults, with the clock reset and its own journal (default: true)"
# Among the settings of a mark, but not among Kafka's.
_BROKERS_ARGUMENT: Final = "brokers"
_SECURITY_ARGUMENT: Final = "security"
_USERS_ARGUMENT: Final = "users"  # as JSON, because the settings of a mark are texts
_ACLS_ARGUMENT: Final = "acls"
_LINES_OF_LOG: Final = 200
_LINES_OF_JOURNAL: Final = 100

Settings = tuple[tuple[str, str], ...]


class SharedBroker:
    """A broker of this session, and the state in which its tests start."""

    def __init__(self, broker: Barnabas) -> None:
        self.broker = broker
        # In the control interface's format: faults, clock, whether journal and strict mode are on.
        self.baseline: dict[str, Any] = _baseline_of(broker)
        self._pid = broker.pid
        self._shared_by: object = None  # the class or module whose mark applied to the last test
        # Where the current test starts in the log and in the journal.
        self._logged = 0
        self._mark = 0

    @property
    def changes(self) -> tuple[ControlClient, int] | None:
        """A value that changes with every call that may have changed the broker; None if it is not running."""
        return (self.broker.control, self.broker.control.changes) if self.broker.running else None

    def begin(self, item: pytest.Item) -> None:
        """Prepare the broker for a test with one call; start it if the previous test stopped it."""
        broker = self.broker
        if not broker.running:
            broker.start()
        if broker.pid != self._pid:  # faults ended with the old process, and their numbers may be reused
            self._pid = broker.pid
            self.baseline = {**self.baseline, "faults": []}
        if self._continues(item):
            self._mark = broker.control.call("GET", "/baseline")["last"]
        else:
            self._mark = broker.journal_since = broker.control.call("POST", "/baseline", self.baseline)["last"]
        self._logged = broker.log_size

    def _continues(self, item: pytest.Item) -> bool:
        """Whether a test takes the broker as the previous test left it."""
        if not item.config.getini("kafka_clean"):
            return True
        before = self._shared_by
        self._shared_by = None
        for node, _ in item.iter_markers_with_node(_SHARED_MARK):
            if node is item:
                self._shared_by = before
                return True
            self._shared_by = node
            return before is node
        return False

    def reports(self) -> Iterator[tuple[str, str]]:
        """The broker's log and reports for this test, each with a title."""
        lines = self.broker.log_from(self._logged).splitlines()
        name = f"Kafka broker {self.broker.bootstrap_servers}"
        if not self.broker.running:
            lines.append("(the broker is no longer running)")
        if lines:
            yield f"{name}: log", "\n".join(lines[-_LINES_OF_LOG:])
        journal = _journal_of(self.broker, self._mark if self.broker.running and self.broker.pid == self._pid else 0)
        if journal:
            yield f"{name}: journal", "\n".join(journal)


class Brokers:
    """The brokers of this session, one per set of settings."""

    def __init__(self, common: dict[str, str]) -> None:
        self._common = common
        self._brokers: dict[Settings, SharedBroker] = {}
        self._known: dict[Settings, Settings] = {}
        self.topics = count(1)

    def same(self, settings: Settings) -> Settings:
        """The single object for these settings: pytest compares parameters by identity."""
        return self._known.setdefault(settings, settings)

    def get(self, settings: Settings) -> Barnabas:
        """Return the broker with these settings; start it if there is none."""
        if settings not in self._brokers:
            from barnabas.handle import Barnabas

            own = dict(settings)
            brokers = int(own.pop(_BROKERS_ARGUMENT, "1"))
            security = own.pop(_SECURITY_ARGUMENT, None)
            users, acls = (own.pop(name, None) for name in (_USERS_ARGUMENT, _ACLS_ARGUMENT))
            broker = Barnabas(
                {**self._common, **own},
                brokers=brokers,
                security=security,
                users=None if users is None else json.loads(users),
                acls=None if acls is None else json.loads(acls),
            )
            self._brokers[settings] = SharedBroker(broker.start())
        return self._brokers[settings].broker

    def of(self, item: pytest.Item) -> SharedBroker | None:
        """The broker of a test, if it has one that was started."""
        if "kafka_broker" not in getattr(item, "fixturenames", ()):
            return None
        callspec = getattr(item, "callspec", None)
        return self._brokers.get(callspec.params.get("kafka_broker", ()) if callspec is not None else ())

    def all(self) -> list[SharedBroker]:
        return list(self._brokers.values())

    def stop(self) -> None:
        for shared in self._brokers.values():
            shared.broker.stop()


def _baseline_of(broker: Barnabas) -> dict[str, Any]:
    baseline: dict[str, Any] = broker.control.call("GET", "/baseline")
    del baseline["last"]
    return baseline


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
        help="a setting for every broker that tests start, by Kafka's name",
    )
    parser.addini(
        "kafka_settings", "settings for every broker that tests start, one KEY=VALUE per line", type="linelist"
    )
    parser.addini("kafka_clean", _CLEAN_HELP, type="bool", default=True)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", _MARK_HELP)
    config.addinivalue_line("markers", _SHARED_MARK_HELP)
    common: dict[str, str] = {}
    for assignment in [*config.getini("kafka_settings"), *config.getoption("--kafka-setting")]:
        name, equals, value = assignment.partition("=")
        if not equals:
            raise pytest.UsageError(f"{assignment!r} is not a Kafka setting of the form KEY=VALUE")
        common[name.strip()] = value.strip()
    config.stash[_BROKERS] = Brokers(common)


def pytest_unconfigure(config: pytest.Config) -> None:
    brokers = config.stash.get(_BROKERS, None)
    if brokers is not None:
        brokers.stop()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give marked tests a broker with their settings, by another parameter to the session's fixture."""
    if "kafka_broker" not in metafunc.fixturenames:
        return
    marks = list(metafunc.definition.iter_markers(_MARK))
    if not marks:
        return
    try:
        settings = _settings_of(marks)
    except pytest.UsageError as error:
        raise pytest.UsageError(f"{metafunc.definition.nodeid}: {error}") from None
    name: Any = getattr(pytest, "HIDDEN_PARAM", None) or ",".join(f"{key}={value}" for key, value in settings)
    same = metafunc.config.stash[_BROKERS].same(settings)
    metafunc.parametrize("kafka_broker", [same], indirect=True, ids=[name], scope="session")


def _settings_of(marks: list[pytest.Mark]) -> Settings:
    """The settings in the marks of a test, its class and its module; the closest mark wins."""
    from barnabas.handle import setting_texts

    settings: dict[str, str] = {}
    for mark in reversed(marks):
        if len(mark.args) > 1 or not all(isinstance(each, dict) for each in mark.args):
            raise pytest.UsageError("@pytest.mark.kafka takes one mapping of settings, and settings as keywords")
        more = dict(mark.kwargs)
        for name in (_USERS_ARGUMENT, _ACLS_ARGUMENT):
            if name in more:
                more[name] = json.dumps(more[name], sort_keys=True)
        settings |= setting_texts(mark.args[0] if mark.args else None, more)
    return tuple(sorted(settings.items()))


# --- fixtures ---


@pytest.fixture(scope="session")
def kafka_broker(request: pytest.FixtureRequest) -> Barnabas:
    """A running broker, shared by the tests of this session that ask for the same settings."""
    from barnabas.errors import BrokerFailed

    try:
        return request.config.stash[_BROKERS].get(getattr(request, "param", ()))
    except BrokerFailed as error:
        # A traceback, of our code or the test's, would not explain it.
        raise pytest.fail.Exception(str(error), pytrace=False) from None


@pytest.fixture
def kafka_topic(kafka_broker: Barnabas, request: pytest.FixtureRequest) -> Iterator[str]:
    """The name of an empty topic that exists and belongs to this test."""
    from barnabas.errors import BarnabasError

    number = next(request.config.stash[_BROKERS].topics)
    words = re.sub(r"[^A-Za-z0-9._-]+", "-", request.node.name).strip("-.")[:100]
    topic = kafka_broker.create_topic(f"{words}-{number}")
    yield topic
    with suppress(BarnabasError):  # the test has deleted it or stopped the broker
        kafka_broker.delete_topic(topic)


# --- each test ---


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Prepare the broker before any fixture of the test uses it."""
    shared = item.config.stash[_BROKERS].of(item)
    if shared is not None:
        shared.begin(item)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> Generator[None, object, object]:
    """Let tests start with what a wider-scoped fixture has done to a broker, for as long as that fixture lives."""
    if fixturedef.scope == "function":
        return (yield)
    brokers = request.config.stash[_BROKERS]
    before = {shared: shared.changes for shared in brokers.all()}
    value = yield
    for shared in brokers.all():
        changes = shared.changes
        if changes is not None and changes != before.get(shared, (shared.broker.control, 0)):
            fixturedef.addfinalizer(partial(setattr, shared, "baseline", shared.baseline))
            shared.baseline = _baseline_of(shared.broker)
    return value


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    shared = item.config.stash[_BROKERS].of(item)
    if report.failed and shared is not None:
        report.sections.extend(shared.reports())
    return report
