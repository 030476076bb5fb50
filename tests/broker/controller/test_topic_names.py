import pytest

from barnabas.broker.controller.topic_names import MetricNames, is_internal, problem_with_name


@pytest.mark.parametrize("name", ["a", "A.b_c-9", "...", "__consumer_offsets", "-", "x" * 249])
def test_names_that_a_topic_may_have(name: str) -> None:
    assert problem_with_name(name) is None


@pytest.mark.parametrize("name", ["", ".", "..", " ", "a b", "a/b", "é", "a\n", "a:b", "x" * 250, "\0"])
def test_names_that_no_topic_may_have(name: str) -> None:
    assert problem_with_name(name)


def test_names_that_differ_in_dots_and_underscores_collide() -> None:
    names = MetricNames(["a.b", "plain", "c_d.e"])
    assert names.collision("a_b") == "a.b"
    assert names.collision("c.d_e") == "c_d.e"
    assert names.collision("a.b") is None
    assert names.collision("a-b") is None
    assert names.collision("plain") is None


def test_internal_topics() -> None:
    assert is_internal("__consumer_offsets")
    assert is_internal("__transaction_state")
    assert not is_internal("__mine")
