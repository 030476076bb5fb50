"""Stories of consumer groups, each at several levels: a level stands for a version of every request."""

import pytest

from tests.support.group_versions import LEVELS


class Stories:
    """Marks the stories of a module: `@story()` at every level, `@story(range(4, 11))` at some."""

    def __init__(self):
        self.all = []

    def __call__(self, levels=LEVELS):
        def mark(function):
            self.all.extend(pytest.param(function, level, id=f"{function.__name__}-{level}") for level in levels)
            return function

        return mark


def play(brokers, tell, level):
    """Tell a story to both brokers, and compare what they answer.

    Stories of other files, about other kinds of groups, may have the same name and play on the same brokers.
    """
    file = tell.__module__.rpartition(".")[2].removeprefix("test_")

    def scenario(side):
        side.begin(f"{file}-{tell.__name__}-{level}", level)
        yield from tell(side)

    brokers.play(scenario)
