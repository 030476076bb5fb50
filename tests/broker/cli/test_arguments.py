"""Arguments that are wrong are shown with what is wrong about them."""

import argparse

import pytest

from broker.cli.arguments import assignment, at_least, bootstrap, partitions, seconds
from broker.cli.client.connection import Address


def test_a_bootstrap_list():
    assert bootstrap("localhost:9092") == [Address("localhost", 9092)]
    assert bootstrap("a:1, [::1]:2") == [Address("a", 1), Address("::1", 2)]


@pytest.mark.parametrize("text", ["", "localhost", "localhost:", ":9092", "a:b", "a:0", "a:65536", "a:1,"])
def test_what_is_no_address_is_refused(text):
    with pytest.raises(argparse.ArgumentTypeError, match="not of the form HOST:PORT"):
        bootstrap(text)


def test_an_assignment_is_cut_at_its_first_sign():
    assert assignment("a=b=c") == ("a", "b=c")
    assert assignment("a=") == ("a", "")
    with pytest.raises(argparse.ArgumentTypeError, match="KEY=VALUE"):
        assignment("a")
    with pytest.raises(argparse.ArgumentTypeError, match="KEY=VALUE"):
        assignment("=a")


def test_numbers():
    assert at_least(0)("0") == 0
    assert seconds("0.5") == 0.5
    for parse, text in ((at_least(1), "0"), (at_least(0), "-1"), (at_least(0), "x"), (seconds, "0"), (seconds, "inf")):
        with pytest.raises(argparse.ArgumentTypeError, match=text):
            parse(text)


def test_partitions():
    assert partitions("2,0,2") == [0, 2]
    for text in ("", "a", "0,", "-1"):
        with pytest.raises(argparse.ArgumentTypeError, match="0,1,2"):
            partitions(text)
