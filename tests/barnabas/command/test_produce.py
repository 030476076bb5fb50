"""`barnabas produce`: what it refuses before it asks a broker."""

import pytest

from barnabas.command import main


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "TOPIC"),
        (["t", "--acks", "2"], "--acks"),
        (["t", "--compression", "zip"], "--compression"),
        (["t", "--partition", "-1"], "--partition"),
        (["t", "--key-separator", ""], "--key-separator"),
        (["t", "-H", "=x"], "NAME=VALUE"),
        (["t", "--timestamp", "noon"], "--timestamp"),
    ],
)
def test_arguments_that_are_wrong_are_named(arguments, said, capsys):
    with pytest.raises(SystemExit) as exit:
        main(["produce", *arguments])
    assert exit.value.code == 2
    assert said in capsys.readouterr().err


def test_a_file_that_is_not_there_is_named(tmp_path, capsys):
    assert main(["produce", "t", "--file", str(tmp_path / "missing")]) == 1
    assert str(tmp_path / "missing") in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["--json", "-K", ":"], ["--json", "--null", ""], ["-k", "a", "-K", ":"]])
def test_options_that_do_not_go_together(arguments, capsys):
    assert main(["produce", "t", *arguments]) == 2
    assert "-K" in capsys.readouterr().err
