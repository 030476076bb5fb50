"""The plugin, in pytest runs such as users have."""

import os
import re
import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.slow  # starts processes

# Without the plugins that only cost time here. What is left loads by itself, as it does for users.
PLAIN = tuple(f"-pno:{each}" for each in ("cacheprovider", "asyncio", "timeout", "hypothesispytest", "anyio"))


@pytest.fixture
def run(tmp_path):
    """Run a file of tests as a user would; returns the exit code and what was printed."""

    def run(tests, *arguments, ini="", plugins=PLAIN):
        (tmp_path / "test_it.py").write_text(textwrap.dedent(tests))
        (tmp_path / "pytest.ini").write_text("[pytest]\n" + textwrap.dedent(ini))
        # With CI set, pytest repeats whole messages in its summary.
        environment = {
            name: value for name, value in os.environ.items() if name != "CI" and not name.startswith("PYTEST_")
        }
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *plugins, *arguments, "test_it.py"],
            cwd=tmp_path,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
        )
        return done.returncode, done.stdout

    return run


def test_tests_share_a_broker_and_have_topics_of_their_own(run):
    code, printed = run(
        """
        import pytest

        seen = {}

        @pytest.fixture(scope="session")
        def address(kafka_broker):
            return kafka_broker.bootstrap_servers

        @pytest.mark.parametrize("number", [1, 2])
        def test_shared(kafka_broker, kafka_topic, address, number):
            topics = kafka_broker.state["topics"]
            assert list(topics) == [kafka_topic]  # that of the test before is gone
            assert kafka_topic.startswith("test_shared-")
            assert len(topics[kafka_topic]["partitions"]) == 1
            seen.setdefault("pid", kafka_broker.pid)
            assert seen["pid"] == kafka_broker.pid
            assert address == kafka_broker.bootstrap_servers

        def test_that_kills(kafka_broker):
            kafka_broker.create_topic("t")
            kafka_broker.kill()

        def test_after_that(kafka_broker, address):
            assert kafka_broker.bootstrap_servers == address
            assert list(kafka_broker.state["topics"]) == ["t"]

        """
    )
    assert code == 0, printed


def test_each_test_begins_with_all_brokers_of_a_cluster(run):
    code, printed = run(
        """
        import pytest

        pytestmark = pytest.mark.kafka(brokers=3, min_insync_replicas=2)
        seen = {}

        @pytest.mark.parametrize("number", [1, 2])
        def test_shared(kafka_broker, kafka_topic, number):
            assert seen.setdefault("pid", kafka_broker.pid) == kafka_broker.pid
            assert len(kafka_broker.bootstrap_servers.split(",")) == 3
            assert [(node["running"], node["isolated"]) for node in kafka_broker.state["nodes"]] == [(True, False)] * 3
            assert len(kafka_broker.state["topics"][kafka_topic]["partitions"][0]["replicas"]) == 3
            kafka_broker.nodes[0].kill()
            kafka_broker.nodes[1].isolate(clients=True)

        @pytest.mark.kafka(brokers=1)
        def test_alone(kafka_broker):
            assert list(kafka_broker.nodes) == [0]

        """
    )
    assert code == 0, printed


def test_marks_settings_and_options_go_together(run):
    code, printed = run(
        """
        import pytest

        pids = {}

        def partitions(broker, topic):
            return len(broker.state["topics"][topic]["partitions"])

        def test_common(kafka_broker, kafka_topic):
            assert partitions(kafka_broker, kafka_topic) == 2
            pids["common"] = kafka_broker.pid

        @pytest.mark.kafka(num_partitions=3)
        def test_three(kafka_broker, kafka_topic):
            assert partitions(kafka_broker, kafka_topic) == 3
            assert kafka_broker.settings["log.retention.ms"] == "12345"
            pids["three"] = kafka_broker.pid

        @pytest.mark.kafka({"num.partitions": 3})
        class TestClass:
            def test_the_same_three(self, kafka_broker):
                assert pids == {"common": pids["common"], "three": kafka_broker.pid}

            @pytest.mark.kafka(num_partitions=4)
            def test_the_closest_mark_wins(self, kafka_topic, kafka_broker):
                assert partitions(kafka_broker, kafka_topic) == 4

        def test_common_again(kafka_broker):
            assert kafka_broker.pid == pids["common"]
        """,
        "--strict-markers",
        "--kafka-setting=num.partitions=2",
        "-v",
        ini="kafka_settings =\n    num.partitions = 1\n    log.retention.ms = 12345",
    )
    assert code == 0, printed
    assert "test_it.py::test_three PASSED" in printed  # the mark does not show in the name


def test_a_failing_test_comes_with_what_the_broker_saw(run):
    code, printed = run(
        """
        import socket

        def test_before(kafka_broker):
            kafka_broker.create_topic("not-of-this-test")

        def test_fails(kafka_broker):
            kafka_broker.control.call("POST", "/journal", {"on": True})
            with socket.create_connection(("127.0.0.1", kafka_broker.port)) as client:
                client.sendall(bytes.fromhex("0000000a 0012 0000 00000007 ffff".replace(" ", "")))  # ApiVersions
                client.recv(1000)
                client.sendall(b"GET / HTTP/1.1")
                client.recv(1000)
            assert False, "for the report"

        def test_passes(kafka_broker):
            pass
        """
    )
    assert code == 1
    assert re.search(r"Kafka broker 127\.0\.0\.1:\d+: log", printed), printed
    assert "it looks like HTTP" in printed
    assert re.search(r"Kafka broker 127\.0\.0\.1:\d+: journal", printed)
    assert "ApiVersions v0" in printed
    assert printed.count(": journal") == 1


def test_a_failed_expectation_shows_the_line_of_the_test(run):
    code, printed = run(
        """
        def test_fails(kafka_broker):
            kafka_broker.journal.expect("OffsetCommit", within=0)
        """
    )
    assert code == 1
    assert "test_it.py:3: AssertionError" in printed
    assert "_failure(" not in printed


def test_a_failing_test_reports_that_its_broker_ended(run):
    code, printed = run(
        """
        def test_fails(kafka_broker):
            kafka_broker.kill()
            assert False, "for the report"
        """
    )
    assert (code, "(the broker is no longer running)" in printed) == (1, True)


# What a user's test does to the broker, and how it inspects the broker.
HELPERS = """
import socket

import pytest

DAY = 86_400

def ask(broker):
    with socket.create_connection(("127.0.0.1", broker.port)) as client:
        client.sendall(bytes.fromhex("0000000a00120000 00000007ffff".replace(" ", "")))  # ApiVersions
        client.recv(1000)

def faults(broker):
    return [fault._told["api"] for fault in broker.faults]
"""


def with_helpers(tests):
    return HELPERS + textwrap.dedent(tests)


def test_each_test_begins_clean(run):
    code, printed = run(
        with_helpers("""
        def test_that_changes_everything(kafka_broker):
            kafka_broker.faults.add(api="Produce", error="NOT_LEADER_OR_FOLLOWER")
            kafka_broker.faults.stop(60_000)
            kafka_broker.clock.advance(DAY)
            kafka_broker.faults.resume()
            ask(kafka_broker)
            kafka_broker.journal.expect("ApiVersions", count=1)
            assert kafka_broker.journal.count("ApiVersions") == 1
            kafka_broker.faults.stop(60_000)
            kafka_broker.journal.stop()
            kafka_broker.strict.start()

        def test_after_that(kafka_broker):
            assert faults(kafka_broker) == []
            assert kafka_broker.clock.ahead == 0
            kafka_broker.journal.none("ApiVersions")
            assert kafka_broker.journal.entries() == []
            assert kafka_broker.journal.count("ApiVersions", since=0) == 1
            ask(kafka_broker)  # it answers again
            assert kafka_broker.journal.count("ApiVersions") == 1
            assert not kafka_broker.control.call("GET", "/strict")["on"]

        def test_a_journal_that_was_kept(kafka_broker):
            journal = kafka_broker.journal
            ask(kafka_broker)
            assert journal.count("ApiVersions") == 1
            kafka_broker.restart()  # entries are numbered from 1 again
            ask(kafka_broker)
            kafka_broker.journal.expect("ApiVersions")
        """)
    )
    assert code == 0, printed


def test_strict_mode_reports_on_the_current_test(run):
    code, printed = run(
        with_helpers("""
        @pytest.fixture(scope="module", autouse=True)
        def strict(kafka_broker):
            kafka_broker.strict.start()

        def misbehave(broker):
            with socket.create_connection(("127.0.0.1", broker.port)) as client:
                client.sendall(bytes.fromhex("0000000a 0063 0000 00000001 ffff".replace(" ", "")))
                client.recv(1)

        def test_that_breaks_a_rule(kafka_broker):
            misbehave(kafka_broker)
            assert len(kafka_broker.strict.reports) == 1

        def test_that_does_not(kafka_broker):
            assert kafka_broker.strict.reports == []
        """)
    )
    assert code == 0, printed


def test_what_a_fixture_of_a_wider_scope_does_stays_as_long_as_it_lives(run):
    code, printed = run(
        with_helpers("""
        @pytest.fixture(scope="session", autouse=True)
        def everywhere(kafka_broker):
            kafka_broker.faults.add(api="DescribeAcls", delay_ms=1)

        @pytest.fixture(scope="class")
        def slow_fetches(kafka_broker):
            kafka_broker.clock.advance(DAY)
            with kafka_broker.faults.add(api="Fetch", delay_ms=1) as fault:
                yield fault

        @pytest.fixture
        def slow_produce(kafka_broker):
            kafka_broker.faults.add(api="Produce", delay_ms=1)  # never removed

        class TestSlow:
            def test_first(self, kafka_broker, slow_fetches, slow_produce):
                assert faults(kafka_broker) == ["DescribeAcls", "Fetch", "Produce"]
                assert kafka_broker.clock.ahead == DAY
                kafka_broker.clock.advance(DAY)

            def test_second(self, kafka_broker, slow_fetches):
                assert faults(kafka_broker) == ["DescribeAcls", "Fetch"]
                assert kafka_broker.clock.ahead == DAY
                kafka_broker.clock.advance(DAY)

        def test_afterwards(kafka_broker):
            assert faults(kafka_broker) == ["DescribeAcls"]
            assert kafka_broker.clock.ahead == 0
            kafka_broker.restart()  # faults do not survive
            kafka_broker.faults.add(api="Produce", delay_ms=1)

        def test_a_fault_with_the_number_of_one_that_is_gone(kafka_broker):
            assert faults(kafka_broker) == []
        """)
    )
    assert code == 0, printed


def test_tests_may_share_what_they_do_to_the_broker(run):
    code, printed = run(
        with_helpers("""
        def test_before(kafka_broker):
            kafka_broker.faults.add(api="Produce", delay_ms=1)

        @pytest.mark.kafka_shared
        class TestStory:
            def test_begins_clean(self, kafka_broker):
                assert faults(kafka_broker) == []
                kafka_broker.faults.add(api="Fetch", delay_ms=1)
                kafka_broker.clock.advance(DAY)
                ask(kafka_broker)

            def test_goes_on(self, kafka_broker):
                assert faults(kafka_broker) == ["Fetch"]
                assert kafka_broker.clock.ahead == DAY
                kafka_broker.journal.expect("ApiVersions", within=0)

        @pytest.mark.kafka_shared
        class TestAnotherStory:
            def test_begins_clean(self, kafka_broker):
                assert faults(kafka_broker) == []
                kafka_broker.faults.add(api="Fetch", delay_ms=1)

        @pytest.mark.kafka_shared
        def test_goes_on_after_another_test(kafka_broker):
            assert faults(kafka_broker) == ["Fetch"]

        def test_after(kafka_broker):
            assert faults(kafka_broker) == []
        """),
        "--strict-markers",
    )
    assert code == 0, printed


def test_a_project_may_share_everything(run):
    code, printed = run(
        with_helpers("""
        def test_first(kafka_broker):
            kafka_broker.faults.add(api="Fetch", delay_ms=1)
            ask(kafka_broker)

        def test_second(kafka_broker):
            assert faults(kafka_broker) == ["Fetch"]
            assert kafka_broker.journal.count("ApiVersions") == 1
        """),
        ini="kafka_clean = false",
    )
    assert code == 0, printed


def test_a_test_that_changes_nothing_costs_one_call(run):
    code, printed = run(
        with_helpers("""
        from barnabas.control import ControlClient

        calls = []
        real_call = ControlClient.call

        @pytest.fixture(scope="session", autouse=True)
        def counting(kafka_broker):
            ControlClient.call = lambda self, method, path, *args, **kwargs: (
                calls.append(f"{method} {path}"), real_call(self, method, path, *args, **kwargs)
            )[1]

        @pytest.fixture(scope="module")
        def something_else():
            pass

        @pytest.mark.kafka(num_partitions=2)
        def test_another_broker(kafka_broker):
            pass

        @pytest.mark.parametrize("number", range(5))
        def test_it(kafka_broker, something_else, number):
            calls.clear()

        def test_the_calls(kafka_broker):
            assert calls == ["POST /baseline"]
        """)
    )
    assert code == 0, printed


def test_async_tests_and_fixtures(run, tmp_path):
    code, printed = run(
        with_helpers("""
        import asyncio

        import pytest_asyncio

        @pytest_asyncio.fixture(scope="module", loop_scope="module")
        async def slow(kafka_broker):
            await asyncio.to_thread(kafka_broker.faults.add, api="Fetch", delay_ms=1)
            yield

        @pytest.mark.parametrize("number", [1, 2])
        async def test_it(kafka_broker, slow, number):
            assert faults(kafka_broker) == ["Fetch"]
            kafka_broker.faults.add(api="Produce", delay_ms=1)
        """),
        *("-p", "asyncio"),
        ini="asyncio_mode = auto",
        plugins=("-p", "no:cacheprovider", "-p", "no:timeout"),
    )
    assert code == 0, printed


def test_errors_of_the_handle_show_the_line_of_the_test(run):
    lines = [
        'kafka_broker.faults.add(api="Nonsense", delay_ms=1)',
        'kafka_broker.journal.entries("Nonsense")',
        "kafka_broker.strict.reports",
        "kafka_broker.clock.advance(-1)",
        'kafka_broker.create_topic("a b")',
        'kafka_broker.delete_topic("unknown")',
        'kafka_broker.restore("unknown")',
        'kafka_broker.control.call("GET", "/nonsense")',
        'kafka_broker.kill() or kafka_broker.state["topics"]',
    ]
    code, printed = run("".join(f"def test_{n}(kafka_broker):\n    {line}\n\n" for n, line in enumerate(lines)))
    assert code == 1
    assert [line.removeprefix(">").strip() for line in printed.splitlines() if line.startswith(">")] == lines
    assert set(re.findall(r"^(\S+\.py):\d+: ", printed, re.MULTILINE)) == {"test_it.py"}, printed
    assert f"{len(lines)} failed" in printed


def test_a_broker_that_does_not_start_says_why_without_a_traceback(run):
    code, printed = run(
        """
        import pytest

        @pytest.mark.kafka(authorizer_class_name="a.B")
        def test(kafka_broker): ...
        """
    )
    assert code == 1
    assert printed.count("Barnabas cannot run authorizers written in Java") == 1, printed
    assert "handle.py" not in printed
    assert "plugin.py" not in printed


def test_an_invalid_setting_is_reported(run):
    code, printed = run("def test(): ...", "--kafka-setting=nonsense")
    assert (code, "KEY=VALUE" in printed) == (4, True)
    code, printed = run(
        """
        import pytest

        @pytest.mark.kafka(no_such_setting=1)
        def test(kafka_broker): ...
        """
    )
    assert (code, "no.such.setting" in printed) == (1, True)


def test_a_run_that_wants_no_broker_starts_none(run):
    code, printed = run(
        """
        import sys

        def test():
            assert "barnabas.handle" not in sys.modules
        """
    )
    assert code == 0, printed


def test_each_worker_of_xdist_has_a_broker_of_its_own(run, tmp_path):
    code, printed = run(
        """
        import pathlib

        import pytest

        @pytest.mark.parametrize("number", range(6))
        def test_it(kafka_broker, kafka_topic, worker_id, number):
            assert kafka_topic in kafka_broker.state["topics"]
            pathlib.Path(f"{worker_id}-{kafka_broker.pid}").touch()
        """,
        *("-n", "2", "--dist", "each"),
    )
    assert code == 0, printed
    assert "12 passed" in printed
    brokers = [path.name.split("-") for path in tmp_path.glob("gw*-*")]
    assert sorted(worker for worker, _ in brokers) == ["gw0", "gw1"]
    assert len({pid for _, pid in brokers}) == 2


def test_a_mark_that_cannot_be_read_is_named_with_its_test(run):
    code, printed = run(
        """
        import pytest

        @pytest.mark.kafka(3)
        def test_three(kafka_broker):
            pass
        """
    )
    assert code == 2, printed
    assert "::test_three: @pytest.mark.kafka takes one mapping of settings" in printed
