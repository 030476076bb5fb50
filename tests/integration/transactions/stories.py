"""How a module of stories is made into tests."""

import pytest

from tests.support.transaction_versions import AGES


class Stories:
    """Collects the stories of a module, each at the ages at which it is told."""

    def __init__(self):
        self.all = []

    def __call__(self, ages=AGES):
        def mark(function):
            self.all += [(function, age) for age in ages]
            return function

        return mark

    def told(self, test):
        """Makes the module's one test of them all."""
        parameters = [pytest.param(function, age, id=f"{function.__name__}-{age}") for function, age in self.all]
        return pytest.mark.java(pytest.mark.parametrize(("story", "age"), parameters)(test))


def tell(brokers, story, age):
    """Play a story to both, each with an id and a topic of the story's own."""
    for side in (brokers.kafka, brokers.barnabas):
        side.begin(f"{story.__name__}-{age}", age)
    brokers.play(story)
