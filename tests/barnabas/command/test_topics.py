"""`barnabas topics`: what it refuses before it asks a broker."""

import pytest

from barnabas.command import main


def test_altering_nothing_is_refused(capsys):
    assert main(["topics", "alter", "t"]) == 2
    assert "nothing to change" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nonsense"], "nonsense"),
        (["create"], "TOPIC"),
        (["create", "t", "--partitions", "0"], "--partitions"),
        (["create", "t", "--config", "x"], "KEY=VALUE"),
        (["list", "--timeout", "-1"], "--timeout"),
    ],
)
def test_arguments_that_are_wrong_are_named(arguments, said, capsys):
    with pytest.raises(SystemExit) as exit:
        main(["topics", *arguments])
    assert exit.value.code == 2
    assert said in capsys.readouterr().err


def test_an_address_that_is_wrong_is_named(capsys):
    assert main(["topics", "list", "-b", "x:y"]) == 2
    assert capsys.readouterr().err == "barnabas: --bootstrap: 'x:y' is not of the form HOST or HOST:PORT\n"
