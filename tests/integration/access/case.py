"""A case: one request, the rights that it needs, and who asks."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from barnabas.client.requests import data
from barnabas.client.requests.records import batch
from barnabas.protocol.api import ApiKey
from tests.support.acl_side_by_side import GuardedSide

UNKNOWN_ID = bytes(range(16))
TIME = 1_700_000_000_000
TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32  # the resources of settings


class Case(NamedTuple):
    key: ApiKey
    versions: Sequence[int]
    request: Callable[[GuardedSide, int], Any]
    needs: Sequence[str]
    others: Sequence[Sequence[str]] = ()  # rights of further users

    def rights(self) -> list[Sequence[str]]:
        some = [[right for right in self.needs if right != missing] for missing in self.needs]
        unique: dict[tuple[str, ...], None] = {}
        for each in (self.needs, (), *some, *self.others):
            unique[tuple(each)] = None
        return list(unique)


def topic(side, name, version, from_version):
    return side.name(name, version >= from_version)


def records(**fields):
    return batch(b"value", timestamp=TIME, **fields)


def produce(side, version, *names, **fields):
    return data.produce(*((topic(side, name, version, 13), 0, records()) for name in names), **fields)


def transactional(side, version):
    own = records(producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
    parts = [(topic(side, "t", version, 13), 0, own), (topic(side, "u", version, 13), 0, records())]
    return data.produce(*parts, transactional_id="x")


def fetch(side, version, *names, **fields):
    return data.fetch(*((topic(side, name, version, 13), 0, 0) for name in names), **fields)


def operations(version):
    fields = {"include_topic_authorized_operations": True} if version >= 8 else {}
    return fields | ({"include_cluster_authorized_operations": True} if 8 <= version <= 10 else {})
