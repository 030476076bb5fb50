"""`barnabas consume`: where it begins, and what does not go together."""

import pytest

from broker.cli import main
from broker.cli.consume import start


@pytest.mark.parametrize(
    ("offset", "begins_at"),
    [("earliest", 10), ("latest", 30), (17, 17), (-5, 25), (-20, 10), (-100, 10), (0, 0), (99, 99)],
)
def test_where_it_begins_in_a_log_from_10_to_30(offset, begins_at):
    """An offset outside is left to the broker to refuse, since it may have moved on by then."""
    assert start(offset, 10, 30) == begins_at


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
    assert "Reading begins at the end and goes on until Ctrl-C" in said
    assert "kcat -e" in said
