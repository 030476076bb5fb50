"""`barnabas consume`: what it refuses before it asks a broker."""

import pytest

from barnabas.command import main


@pytest.mark.parametrize("arguments", [["--partition", "0"], ["--offset", "5"]])
def test_a_group_decides_what_its_members_read(arguments, capsys):
    assert main(["consume", "t", "--group", "g", *arguments]) == 2
    assert "in a group" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "TOPIC"),
        (["t", "--offset", "x"], "earliest"),
        (["t", "--offset", "5", "--from-beginning"], "--from-beginning"),
        (["t", "--partition", "a"], "0,1,2"),
        (["t", "--max-messages", "0"], "--max-messages"),
        (["t", "--format", "%x"], "%x"),
        (["t", "-f", "%v", "--json"], "not allowed with"),
        (["t", "--isolation", "serializable"], "--isolation"),
    ],
)
def test_arguments_that_are_wrong_are_named(arguments, said, capsys):
    with pytest.raises(SystemExit) as exit:
        main(["consume", *arguments])
    assert exit.value.code == 2
    assert said in capsys.readouterr().err


def test_the_help_says_where_it_begins_and_ends(capsys):
    with pytest.raises(SystemExit):
        main(["consume", "--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert "Reading starts at the end and continues until Ctrl-C" in said
    assert "With -e it stops" in said


def test_a_pattern_that_is_wrong(capsys):
    assert main(["consume", "-r", "orders-("]) == 2
    assert "is not a regular expression" in capsys.readouterr().err
