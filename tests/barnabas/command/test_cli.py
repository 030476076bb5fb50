"""The command's first impression: what it says to somebody who has not read anything yet."""

from importlib.metadata import entry_points, version

import pytest

from barnabas.command import main


def test_the_distribution_installs_it_as_barnabas():
    (command,) = entry_points(group="console_scripts", name="barnabas")
    assert command.load() is main


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"barnabas {version('barnabas')}\n"


def test_without_a_command_it_says_which_there_are(capsys):
    assert main([]) == 2
    said = capsys.readouterr().out
    assert "usage: barnabas" in said
    assert "run a broker" in said
    assert "echo hello | barnabas produce orders" in said


@pytest.mark.parametrize("command", ["topics", "groups", "ctl", "pipeline"])
def test_a_command_without_an_action_says_which_there_are(command, capsys):
    assert main([command]) == 2
    said = capsys.readouterr().out
    assert f"usage: barnabas {command}" in said
    assert "actions:" in said


@pytest.mark.parametrize("arguments", [["-b", "x", "check", "."], ["--profile", "x", "serve"]])
def test_commands_that_use_no_broker_refuse_its_address(arguments, capsys):
    assert main(arguments) == 2
    assert f"barnabas {arguments[2]} does not connect to a broker" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["nonsense"], ["serve", "--nonsense"]])
def test_a_word_that_it_does_not_know_is_named(arguments, capsys):
    with pytest.raises(SystemExit) as exit:
        main(arguments)
    assert exit.value.code == 2
    assert "nonsense" in capsys.readouterr().err


def test_help_for_serve_names_its_options(capsys):
    with pytest.raises(SystemExit) as exit:
        main(["serve", "--help"])
    assert exit.value.code == 0
    said = capsys.readouterr().out
    assert "(default: 127.0.0.1:9092)" in said
    assert "(default: data)" in said
    for option in ("--listen [NAME://]HOST:PORT", "--data DIR", "[server.properties]", "--config KEY=VALUE"):
        assert option in said
