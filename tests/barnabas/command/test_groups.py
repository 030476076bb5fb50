"""`barnabas groups`: lag, and what it refuses before it asks a broker."""

import pytest

from barnabas.command import main
from barnabas.command.groups import lag


def test_lag_is_known_where_both_ends_are():
    assert lag(4, 10) == 6
    assert lag(10, 10) == 0
    assert lag(None, 10) is None
    assert lag(4, None) is None


@pytest.mark.parametrize("arguments", [[], ["g", "--all-groups"]])
def test_the_groups_may_be_given_only_once(arguments, capsys):
    assert main(["groups", "describe", *arguments]) == 2
    assert "--all-groups" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["delete"], "GROUP"),
        (["describe", "g", "--members", "--state"], "--members"),
        (["describe", "g", "--interval", "0"], "--interval"),
    ],
)
def test_arguments_that_are_wrong_are_named(arguments, said, capsys):
    with pytest.raises(SystemExit) as exit:
        main(["groups", *arguments])
    assert exit.value.code == 2
    assert said in capsys.readouterr().err
