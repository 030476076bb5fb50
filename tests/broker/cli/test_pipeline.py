"""`barnabas pipeline` where what it needs is not installed. What it does otherwise: tests/pipeline/test_command.py."""

import sys

import pytest

from broker.cli import main


@pytest.mark.parametrize("action", ["init", "validate"])
def test_what_is_not_installed_is_told_in_a_sentence(action, tmp_path, monkeypatch, capsys):
    for module in [name for name in sys.modules if name.partition(".")[0] == "pipeline"]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)

    assert main(["pipeline", action, str(tmp_path / "new.yaml")]) == 2

    said = capsys.readouterr().err
    assert "confluent_kafka, which is not installed: pip install 'barnabas[pipeline]'" in said
    assert not list(tmp_path.iterdir())
