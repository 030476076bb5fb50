"""Each mistake in the museum is found, and nothing is found without the mistake."""

import pytest

from barnabas.command import main
from barnabas.simulation.museum import EXHIBITS
from barnabas.simulation.run import run
from barnabas.simulation.story import tell


@pytest.mark.slow
@pytest.mark.parametrize("exhibit", EXHIBITS.values(), ids=lambda each: each.name)
def test_a_mistake_is_found_and_nothing_without_it(exhibit):
    assert exhibit.seed is not None
    found = exhibit.show()
    assert found.findings
    result = run(found.plan)
    assert not result.findings, "\n".join(tell(result))


def test_the_museum_lists_its_exhibits(capsys):
    assert main(["museum"]) == 0
    listed = capsys.readouterr().out
    assert all(each.title in listed for each in EXHIBITS.values())


def test_an_exhibit_is_played_with_its_story(capsys):
    exhibit = next(iter(EXHIBITS.values()))
    assert main(["museum", exhibit.name]) == 0
    told = capsys.readouterr().out
    assert exhibit.page.strip() in told
    assert "BROKEN" in told


def test_an_exhibit_that_is_not_there():
    assert main(["museum", "kip-0"]) == 2
