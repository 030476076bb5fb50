"""The plugin, in pytest runs of a user's own."""

import os
import re
import subprocess
import sys
import textwrap

import pytest

PLAIN = ("-p", "no:cacheprovider", "-p", "no:asyncio", "-p", "no:timeout")


@pytest.fixture
def run(tmp_path):
    """Run a file of tests as a user would; returns the exit code and what was printed."""

    def run(tests, *arguments, ini=""):
        (tmp_path / "test_it.py").write_text(textwrap.dedent(tests))
        (tmp_path / "pytest.ini").write_text("[pytest]\n" + textwrap.dedent(ini))
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *PLAIN, *arguments, "test_it.py"],
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


def test_a_failing_test_is_told_that_its_broker_ended(run):
    code, printed = run(
        """
        def test_fails(kafka_broker):
            kafka_broker.kill()
            assert False, "for the report"
        """
    )
    assert (code, "(it is not running any more)" in printed) == (1, True)


def test_what_is_no_setting_is_said(run):
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
