"""The same requests, by users with the same rights, get the same answers from Apache Kafka and from Barnabas.

Each API is asked by one user who has all rights that it needs, by users who lack one of them, by one who has none, and
by some who have others.
"""

import pytest

from tests.integration.access.cases import CASES
from tests.support.acl_side_by_side import ADMIN

pytestmark = pytest.mark.java


@pytest.mark.parametrize("name", CASES)
def test_each_right(brokers, name):
    case = CASES[name]
    place = list(CASES).index(name)
    found = []
    for number, rights in enumerate(case.rights()):
        for version in case.versions:
            try:
                brokers.play(lambda side, v=version, n=number: [ask(side, f"u{place}-{n}", case, v)])
            except AssertionError as difference:
                found.append(f"version {version}, with {', '.join(rights) or 'no right'}:\n{difference}")
    assert not found, "\n".join(found)


def ask(side, user, case, version):
    side.user = user
    try:
        return side.ask(case.key, case.request(side, version), version)
    finally:
        side.user = ADMIN
