"""`barnabas conformance` against a real broker, and against what is none."""

import json
import socket
from xml.etree import ElementTree

from broker.cli import main
from protocol.api import ApiKey
from protocol.messages.metadata import MetadataResponse
from tests.support.scripted_broker import ScriptedBroker

FEW = ("--only", "api-versions", "--only", "framing.oversized")


def test_a_broker_that_passes(command, tmp_path):
    files = {kind: tmp_path / f"report.{kind}" for kind in ("json", "junit", "html")}
    options = [word for kind, path in files.items() for word in (f"--{kind}", path)]
    result = command("conformance", *FEW, *options)
    assert (result.status, result.err) == (0, "")
    assert result.out.splitlines()[-1] == "13 checks: 13 passed, 0 failed, 0 not applicable"
    assert json.loads(files["json"].read_text())["summary"]["passed"] == 13
    assert ElementTree.parse(files["junit"]).getroot().get("tests") == "13"
    assert files["html"].read_text().startswith("<!doctype html>")


def test_a_broker_that_fails(capsys):
    """It answers ApiVersions and Metadata, and has no cluster id."""
    with ScriptedBroker() as broker:
        status = main(["conformance", "--bootstrap", broker.bootstrap, "--only", "metadata.cluster-id"])
    assert status == 1
    assert "saw       None" in capsys.readouterr().out


def test_a_broker_that_does_not_have_what_a_check_needs(capsys):
    with ScriptedBroker() as broker:
        status = main(["conformance", "--bootstrap", broker.bootstrap, "--only", "groups.*", "--verbose"])
    said = capsys.readouterr().out
    assert status == 0
    assert "FindCoordinator is not advertised" in said
    assert "30 not applicable" in said


def test_a_list_needs_no_broker(capsys):
    assert main(["conformance", "--list", "--only", "fetch-sessions.closed"]) == 0
    assert "KIP-227" in capsys.readouterr().out


def test_a_name_that_no_check_has(capsys):
    assert main(["conformance", "--only", "bogus"]) == 2
    assert capsys.readouterr().err == "barnabas: no check is called bogus; --list has their names\n"


def test_nobody_there(capsys):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
    assert main(["conformance", "--bootstrap", address]) == 2
    assert "cannot connect" in capsys.readouterr().err


def test_somebody_who_says_nothing(capsys):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        assert main(["conformance", "--bootstrap", address, "--timeout", "0.5"]) == 2
    assert "did not answer" in capsys.readouterr().err


def test_a_report_that_cannot_be_written(command, tmp_path):
    result = command("conformance", "--only", "api-versions.first-request", "--json", tmp_path / "no" / "report.json")
    assert result.status == 2
    assert "No such file or directory" in result.err


def test_a_broker_that_goes_away_in_the_middle(capsys):
    """The checks that it does not answer have failed, and the run comes to its end."""
    asked = iter([True])

    def once(request):
        if next(asked, False):
            return MetadataResponse(brokers=[], topics=[])
        return None

    with ScriptedBroker({ApiKey.METADATA: once}) as broker:
        status = main(["conformance", "--bootstrap", broker.bootstrap, "--only", "metadata", "--timeout", "20"])
    assert status == 1
    assert "the connection was closed" in capsys.readouterr().out
