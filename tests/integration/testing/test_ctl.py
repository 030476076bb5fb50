"""`barnabas ctl` against a broker that was started with --control, and how `serve` opens that."""

import json
import signal
import subprocess
import sys

import pytest

from barnabas.command import main


@pytest.fixture
def ctl(broker, monkeypatch, capsys):
    monkeypatch.setenv("BARNABAS_CONTROL", broker.control.url)
    monkeypatch.setenv("BARNABAS_CONTROL_TOKEN", broker.control.token)

    def ctl(*arguments):
        status = main(["ctl", *arguments])
        captured = capsys.readouterr()
        return status, json.loads(captured.out) if captured.out else captured.err

    return ctl


def test_it_drives_the_broker(ctl, broker):
    created = ctl("create-topic", "t", "--partitions", "2", "--config", "retention.ms=1000")
    assert created == (0, {"name": "t", "partitions": 2})
    assert ctl("state")[1]["topics"].keys() == {"t"}
    assert ctl("state", "topics")[1]["t"]["configs"] == {"retention.ms": "1000"}
    assert ctl("snapshot", "here")[0] == 0
    assert ctl("snapshots") == (0, ["here"])
    assert ctl("clock", "advance", "2h")[1]["ahead_ms"] == 7_200_000
    assert ctl("clock")[1]["ahead_ms"] == 7_200_000
    assert ctl("reset") == (0, "")
    assert (broker.state["topics"], broker.state["clock"]["ahead_ms"]) == ({}, 0)
    assert ctl("restore", "here")[0] == 0
    assert broker.state["topics"].keys() == {"t"}
    broker.control.call("DELETE", "/snapshots/here")


@pytest.mark.parametrize(
    "url", ["nonsense", "http://127.0.0.1", "http://127.0.0.1:abc", "http://[::1", "https://127.0.0.1:1"]
)
def test_what_is_not_the_url_of_a_control_interface_is_refused(ctl, url):
    status, said = ctl("--url", url, "state")
    assert (status, said) == (
        2,
        f"barnabas: {url!r} is not the URL of a control interface, such as http://127.0.0.1:36355\n",
    )


def test_a_control_interface_that_is_not_there(ctl):
    status, said = ctl("--url", "http://127.0.0.1:1", "state")
    assert status == 1
    assert said == "barnabas: no response from the control interface at http://127.0.0.1:1: Connection refused\n"


def test_what_is_refused_is_reported_in_a_sentence(ctl, monkeypatch):
    status, said = ctl("restore", "nothing")
    assert (status, "there is no snapshot 'nothing'; there are" in said) == (1, True)
    status, said = ctl("clock", "advance")
    assert (status, "how far" in said) == (2, True)
    status, said = ctl("--token", "wrong", "state")
    assert (status, "Authorization" in said) == (1, True)
    status, said = ctl("state", "--url", "http://127.0.0.1:1")
    assert (status, "no response" in said) == (1, True)
    monkeypatch.delenv("BARNABAS_CONTROL_TOKEN")
    status, said = ctl("state")
    assert (status, "BARNABAS_CONTROL_TOKEN" in said) == (2, True)


def test_reports_of_a_broker_that_is_not_strict_are_an_error(ctl, broker):
    """An empty list would look as if clients had done nothing wrong."""
    status, said = ctl("strict")
    assert (status, "strict mode is off" in said) == (2, True)
    assert ctl("strict", "on") == (0, "")
    assert ctl("strict") == (0, "")
    assert ctl("strict", "off") == (0, "")


def test_an_unknown_setting_is_reported(ctl, capsys):
    with pytest.raises(SystemExit):
        ctl("create-topic", "t", "--config", "retention.ms")
    assert "'retention.ms' is not of the form KEY=VALUE" in capsys.readouterr().err


def serve(*arguments, **options):
    command = [sys.executable, "-m", "barnabas", "serve", "--listen", "127.0.0.1:0", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


def test_an_ephemeral_broker_leaves_nothing(tmp_path):
    with serve("--ephemeral", "--data", str(tmp_path / "data")) as process:
        assert process.stdout.readline().startswith("barnabas ready on ")
        assert (tmp_path / "data" / "registry.db").exists()
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    assert not (tmp_path / "data").exists()


def test_data_that_is_there_is_not_taken_for_ephemeral(tmp_path):
    (tmp_path / "precious").touch()
    with serve("--ephemeral", "--data", str(tmp_path)) as process:
        assert process.wait(60) == 2
        assert "is not empty" in process.stderr.read()
    assert (tmp_path / "precious").exists()


def test_control_where_others_may_come_needs_a_token(tmp_path):
    with serve("--data", str(tmp_path), "--control", "0.0.0.0:0") as process:
        assert process.wait(60) == 1
        assert "BARNABAS_CONTROL_TOKEN" in process.stderr.read()
