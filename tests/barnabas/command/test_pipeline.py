"""`barnabas pipeline` where what it needs is not installed. What it does otherwise: tests/pipeline/test_command.py."""

import sys

import pytest

from barnabas.command import main


@pytest.mark.parametrize("action", ["init", "validate"])
def test_what_is_not_installed_is_reported_in_a_sentence(action, tmp_path, monkeypatch, capsys):
    for module in [name for name in sys.modules if f"{name}.".startswith("barnabas.pipeline.")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)

    assert main(["pipeline", action, str(tmp_path / "new.yaml")]) == 2

    said = capsys.readouterr().err
    assert "confluent_kafka, which is not installed: pip install '.[pipeline]' in a clone of Barnabas" in said
    assert not list(tmp_path.iterdir())
