"""The members that a scenario has in a consumer group, of whichever libraries."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.integration.clients.interface import (
    Assignor,
    Closing,
    ConsumerRecord,
    GroupClient,
    GroupConsumer,
    Partition,
    wait_until,
)


def partitions_of(*topics: str, count: int) -> set[Partition]:
    return {(topic, number) for topic in topics for number in range(count)}


class Group(Closing):
    """Members are polled in turn: that is when they take part in a rebalance. Some may be left out, as if they hung."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.members: list[GroupConsumer] = []

    def join(
        self,
        client: GroupClient,
        *topics: str,
        assignor: Assignor = "range",
        settings: dict[str, str | int] | None = None,
    ) -> GroupConsumer:
        member = client.group_consumer(self.name, assignor, settings)
        self.members.append(member)
        if topics:
            member.subscribe(*topics)
        return member

    def leave(self, member: GroupConsumer) -> None:
        self.members.remove(member)
        member.close()

    def poll_until(
        self, condition: Callable[[], bool], awaited: str, polled: Sequence[GroupConsumer] | None = None
    ) -> None:
        """Poll all members, or only those given, until a condition holds."""
        members = self.members if polled is None else polled

        def came_about() -> bool:
            for member in members:
                member.poll()
            return condition()

        wait_until(came_about, lambda: f"{awaited}; there is {[sorted(each.assignment()) for each in members]}")

    def poll_until_shared(
        self, partitions: set[Partition], polled: Sequence[GroupConsumer] | None = None
    ) -> list[set[Partition]]:
        """Poll until each member has a share of the partitions and each partition one owner; returns the shares."""
        members = self.members if polled is None else polled
        shares: list[set[Partition]] = []

        def is_shared() -> bool:
            shares[:] = [member.assignment() for member in members]
            return all(shares) and sum(map(len, shares)) == len(partitions) and set.union(*shares) == partitions

        self.poll_until(is_shared, f"{len(partitions)} partitions shared by {len(members)} members", members)
        return shares

    def read(self, count: int) -> list[list[ConsumerRecord]]:
        """The next records, `count` at least, by the members that read them."""
        found: list[list[ConsumerRecord]] = [[] for _ in self.members]

        def enough() -> bool:
            for records, member in zip(found, self.members, strict=True):
                records += member.poll()
            return sum(map(len, found)) >= count

        wait_until(enough, lambda: f"{count} records to read; there were {[len(records) for records in found]}")
        return found

    def close(self) -> None:
        while self.members:
            self.members.pop().close()
