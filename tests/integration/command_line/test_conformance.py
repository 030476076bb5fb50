"""`barnabas conformance` against a real broker, and against servers that are not brokers."""

import socket
from xml.etree import ElementTree

from barnabas.command import main
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.metadata import MetadataResponse
from tests.support.ports import HeldPort
from tests.support.scripted_broker import ScriptedBroker

FEW = ("--only", "api-versions", "--only", "framing.oversized")


def test_a_broker_that_passes(command, tmp_path):
    files = {kind: tmp_path / f"report.{kind}" for kind in ("junit", "html")}
    options = [word for kind, path in files.items() for word in (f"--{kind}", path)]
    result = command("conformance", *FEW, *options)
    assert (result.status, result.err) == (0, "")
    assert result.out.splitlines()[-1] == "13 checks: 13 passed, 0 failed, 0 not applicable"
    assert ElementTree.parse(files["junit"]).getroot().get("tests") == "13"
    assert files["html"].read_text().startswith("<!doctype html>")


def test_a_report_as_json(from_json):
    assert from_json("conformance", *FEW)["summary"]["passed"] == 13


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
    assert capsys.readouterr().err == "barnabas: no check is called bogus; --list shows their names\n"


def test_nobody_there(capsys):
    held = HeldPort()
    assert main(["conformance", "--bootstrap", held.address]) == 2
    assert "cannot connect" in capsys.readouterr().err


def test_a_client_that_sends_nothing(capsys):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        assert main(["conformance", "--bootstrap", address, "--timeout", "0.5"]) == 2
    assert "did not answer" in capsys.readouterr().err


def test_a_report_that_cannot_be_written(command, tmp_path):
    result = command("conformance", "--only", "api-versions.first-request", "--html", tmp_path / "no" / "report.html")
    assert result.status == 2
    assert "No such file or directory" in result.err


def test_a_broker_that_goes_away_in_the_middle(capsys):
    """Checks without an answer fail, and the run completes."""
    asked = iter([True])

    def once(request):
        if next(asked, False):
            return MetadataResponse(brokers=[], topics=[])
        return None

    with ScriptedBroker({ApiKey.METADATA: once}) as broker:
        status = main(["conformance", "--bootstrap", broker.bootstrap, "--only", "metadata", "--timeout", "20"])
    assert status == 1
    assert "the connection was closed" in capsys.readouterr().out
