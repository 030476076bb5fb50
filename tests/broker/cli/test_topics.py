"""`barnabas topics`: what it refuses before it asks anybody."""

import pytest

from broker.cli import main


def test_altering_nothing_is_refused(capsys):
    assert main(["topics", "alter", "t"]) == 2
    assert "nothing to change" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "ACTION"),
        (["nonsense"], "nonsense"),
        (["create"], "TOPIC"),
        (["create", "t", "--partitions", "0"], "--partitions"),
        (["create", "t", "--config", "x"], "KEY=VALUE"),
        (["list", "--bootstrap", "x"], "HOST:PORT"),
        (["list", "--timeout", "-1"], "--timeout"),
    ],
)
def test_arguments_that_are_wrong_are_named(arguments, said, capsys):
    with pytest.raises(SystemExit) as exit:
        main(["topics", *arguments])
    assert exit.value.code == 2
    assert said in capsys.readouterr().err
