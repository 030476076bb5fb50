"""Faults, journal and strict mode from outside: over HTTP, by `barnabas ctl`, and by the options of `serve`."""

import json
import subprocess
import sys
from contextlib import closing
from socket import create_connection

import pytest

from barnabas import Barnabas
from barnabas.command import main
from barnabas.errors import ControlFailed
from tests.integration.clients.interface import ProducerRecord
from tests.integration.clients.kafka_python import KafkaPythonClient


@pytest.fixture
def ctl(broker, monkeypatch, capsys):
    """`barnabas ctl`: its status and what it prints."""
    monkeypatch.setenv("BARNABAS_CONTROL", broker.control.url)
    monkeypatch.setenv("BARNABAS_CONTROL_TOKEN", broker.control.token)

    def run(*arguments):
        status = main(["ctl", *arguments])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    yield run
    broker.faults.clear()


def test_faults_from_a_shell(broker, ctl, tmp_path):
    status, out, _ = ctl("faults", "add", "api=Produce,Fetch", "topic=t*", "error=NOT_LEADER_OR_FOLLOWER", "times=2")
    assert status == 0
    assert "api=Produce,Fetch topic=t* error=NOT_LEADER_OR_FOLLOWER times=2" in out
    (fault,) = broker.faults
    assert (fault.hits, fault.over) == (0, False)
    script = tmp_path / "faults.yaml"
    script.write_text("- {api: Fetch, delay_ms: 5}\n- {corrupt: true, times: 1}\n")
    assert ctl("faults", "load", str(script))[0] == 0
    assert len(list(broker.faults)) == 3
    assert ctl("faults", "list")[1].count("\n") == 4
    assert ctl("faults", "remove", str(fault.id))[0] == 0
    assert ctl("faults", "clear")[0] == 0
    assert list(broker.faults) == []


def test_errors_are_reported_in_a_shell_too(ctl, tmp_path):
    status, _, complaint = ctl("faults", "add", "error=NO")
    assert (status, complaint) == (
        1,
        "barnabas: error: 'NO' is not one of Kafka's error codes, such as NOT_LEADER_OR_FOLLOWER\n",
    )
    assert ctl("faults", "add", "x")[0] == 2
    script = tmp_path / "faults.yaml"
    script.write_text("- {eror: X}")
    status, _, complaint = ctl("faults", "load", str(script))
    assert status == 2
    assert "fault 1: eror: there is no such field; the fields are api, " in complaint


def test_the_journal_from_a_shell(broker, client_named, topic, ctl):
    client_named("kafka-python").write(topic, ProducerRecord(b"one"))
    status, out, _ = ctl("journal", "--api", "Produce", "--topic", topic)
    assert status == 0
    assert f"{topic}-0; answered" in out
    _, out, _ = ctl("journal", "show", "--topic", topic, "--limit", "1", "--json")
    assert json.loads(out)["partitions"] == [f"{topic}-0"]
    status, _, complaint = ctl("journal", "--api", "Prduce")
    assert status == 1
    assert "no API is called 'Prduce'" in complaint


def test_strict_mode_that_was_never_on_refuses_to_report(monkeypatch, capsys):
    with Barnabas() as broker:
        monkeypatch.setenv("BARNABAS_CONTROL", broker.control.url)
        monkeypatch.setenv("BARNABAS_CONTROL_TOKEN", broker.control.token)
        with pytest.raises(ControlFailed, match="strict mode is off") as caught:
            _ = broker.strict.reports
        assert caught.value.status == 409
        assert main(["ctl", "strict"]) != 0
        assert "start the broker with --strict" in capsys.readouterr().err
        broker.strict.start()
        broker.strict.stop()
        assert broker.strict.reports == []


def test_strict_from_a_shell(broker, ctl):
    assert ctl("strict", "on")[0] == 0
    assert ctl("strict") == (0, "", "")
    with create_connection(("127.0.0.1", broker.port)) as connection:
        connection.sendall(b"\x00\x00\x00\x0a\x00\x63\x00\x00\x00\x00\x00\x01\xff\xff")
        assert connection.recv(1) == b""
    status, out, _ = ctl("strict")
    assert status == 1
    assert out.startswith("api-not-served: None at 127.0.0.1:")
    (report,) = broker.strict.reports
    assert (report.rule, report.count) == ("api-not-served", 1)
    assert ctl("strict", "clear")[0] == 0
    assert broker.strict.reports == []
    broker.strict.stop()


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "field"),
    [
        ("POST", "/faults", {"eror": 1}, 400, "eror"),
        ("POST", "/faults", None, 400, "fault"),
        ("GET", "/faults/4711", None, 404, None),
        ("DELETE", "/faults/x", None, 404, None),
        ("POST", "/faults/stop", {"ms": 0}, 400, "ms"),
        ("POST", "/journal", {"on": 1}, 400, "on"),
        ("POST", "/journal/expect", {"within": -1}, 400, "within"),
        ("POST", "/journal/expect", {"count": 0}, 400, "count"),
        ("POST", "/journal/expect", {"who": "x"}, 400, "who"),
        ("GET", "/journal?limit=x", None, 400, "limit"),
        ("GET", "/journal?error=x", None, 400, "error"),
        ("POST", "/strict", {}, 400, "on"),
        ("POST", "/baseline", {}, 400, "faults"),
        ("POST", "/baseline", {"faults": ["x"]}, 400, "faults"),
        ("POST", "/baseline", {"faults": [], "ahead_ms": "1"}, 400, "ahead_ms"),
        ("POST", "/baseline", {"faults": [], "ahead_ms": 1, "journal": 1}, 400, "journal"),
        ("POST", "/baseline", {"faults": [], "ahead_ms": 1, "journal": True}, 400, "strict"),
    ],
)
def test_what_is_wrong_is_answered_with_the_field(broker, method, path, body, status, field):
    with pytest.raises(ControlFailed) as caught:
        broker.control.call(method, path, body)
    assert (caught.value.status, caught.value.field) == (status, field)


def test_a_baseline_is_saved_and_restored(broker):
    kept = broker.faults.add(api="Heartbeat", delay_ms=5)
    broker.clock.advance(100)
    baseline = broker.control.call("GET", "/baseline")
    del baseline["last"]
    assert baseline == {"faults": [kept.id], "ahead_ms": 100_000, "journal": True, "strict": False}
    broker.faults.add(api="Fetch", delay_ms=5)
    broker.faults.stop(60_000)
    broker.clock.advance(100)
    broker.journal.stop()
    restored = broker.control.call("POST", "/baseline", baseline)
    assert restored.items() >= baseline.items()
    assert [fault.id for fault in broker.faults] == [kept.id]
    assert broker.clock.ahead == 100
    broker.reset()


def test_a_reset_takes_faults_and_entries_along(broker):
    broker.faults.add(api="Heartbeat", delay_ms=5)
    broker.reset()
    assert list(broker.faults) == []
    assert broker.journal.entries() == []


def test_all_of_it_from_the_start(tmp_path):
    faults = tmp_path / "faults.yaml"
    faults.write_text("- {api: Produce, error: NOT_LEADER_OR_FOLLOWER, times: 1}")
    journal = tmp_path / "journal.jsonl"
    options = ("--faults", str(faults), "--journal", str(journal), "--strict")
    with Barnabas(journal=False, arguments=options) as broker:
        with closing(KafkaPythonClient(broker.bootstrap_servers)) as client:
            client.write("t", ProducerRecord(b"one"))
        (fault,) = broker.faults
        assert fault.hits == 1
        assert broker.strict.reports == []
        failed = broker.journal.expect("Produce", error="NOT_LEADER_OR_FOLLOWER")
    entries = [json.loads(line) for line in journal.read_text().splitlines()]
    assert failed in entries


def test_a_file_of_faults_that_is_wrong_stops_the_start(tmp_path):
    faults = tmp_path / "faults.yaml"
    faults.write_text("- {api: Produce}")
    command = [sys.executable, "-m", "barnabas", "serve", "--listen", "127.0.0.1:0", "--ephemeral"]
    done = subprocess.run([*command, "--faults", str(faults)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert f"barnabas: {faults}: fault 1: error: the fault has no effect" in done.stderr
