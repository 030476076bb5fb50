"""What may come next on a command line. Real shells are in tests/integration/command_line/test_completion.py."""

import pytest

from barnabas.command import command_parser, main
from barnabas.command.candidates import candidates
from barnabas.command.completion import _SCRIPTS


def after(*words):
    return [each.text for each in candidates(command_parser(), words)]


def test_commands_and_actions():
    assert after("con") == ["configs", "consume", "conformance"]
    assert after("topics", "de") == ["describe", "delete", "delete-records"]
    assert after("ctl", "faults", "re") == ["remove", "resume"]
    assert after("nonsense", "") == []


def test_options_wherever_the_broker_is_named():
    expected = ["--partitions"]
    assert after("topics", "create", "--par") == expected
    assert after("-b", "x", "topics", "-b", "y", "create", "t", "--bootstrap=z", "--par") == expected
    assert "-b" in after("topics", "list", "-")


def test_options_say_what_they_do():
    (found,) = candidates(command_parser(), ["groups", "describe", "g", "--inter"])
    assert found == ("--interval", "how often --watch refreshes")


def test_choices():
    assert after("produce", "t", "--acks", "") == ["0", "1", "all"]
    assert after("produce", "t", "--acks=a") == ["--acks=all"]
    assert after("configs", "set", "") == ["topic", "broker", "group"]
    assert after("completion", "") == ["bash", "zsh", "fish"]


def test_files_are_left_to_the_shell():
    assert after("produce", "t", "--file", "x") == [":files"]
    assert after("serve", "--data", "") == [":directories"]
    assert after("serve", "") == [":files"]
    assert after("check", "x") == [":directories"]
    assert after("serve", "--journal", "--str") == ["--strict"]


def test_profiles(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "barnabas").mkdir()
    (tmp_path / "barnabas" / "config.toml").write_text("[profiles.local]\n[profiles.staging]\n")
    assert after("topics", "list", "--profile", "") == ["local", "staging"]


@pytest.mark.parametrize(
    ("line", "printed"),
    [
        ("barnabas top", "topics"),
        ("/path/to/barnabas topics del", "delete\ndelete-records"),
        ("X=1 barnabas produce t --acks=", "0\n1\nall"),
        ("barnabas produce t --acks ", "0\n1\nall"),
        ("barnabas produce 't", ""),
    ],
)
def test_bash_hands_over_its_line_and_replaces_what_follows_the_last_sign(line, printed, capsys):
    assert main(["__complete", "bash", line]) == 0
    assert capsys.readouterr().out.strip() == printed


def test_without_a_broker_completion_offers_nothing(capsys):
    assert main(["__complete", "fish", "-b", "127.0.0.1:1", "consume", ""]) == 0
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("shell", _SCRIPTS)
def test_a_script_for_each_shell(shell, capsys):
    assert main(["completion", shell]) == 0
    assert f"__complete {shell}" in capsys.readouterr().out


def test_a_shell_without_a_script(capsys):
    with pytest.raises(SystemExit):
        main(["completion", "powershell"])
    assert "bash" in capsys.readouterr().err
