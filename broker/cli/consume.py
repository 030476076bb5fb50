"""`barnabas consume`: print the records of topics, alone or as a member of a group."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from typing import Final

from broker.cli import record_format
from broker.cli.arguments import add_connection, at_least, client, partitions
from broker.cli.client.client import Client, TopicPartition
from broker.cli.client.errors import BrokerError, ClientError
from broker.cli.client.fetched import Fetched, cut
from broker.cli.client.fetcher import Fetcher
from broker.cli.client.member import Member
from broker.cli.client.offsets import (
    LATEST,
    READ_COMMITTED,
    READ_UNCOMMITTED,
    begin_and_end,
    committed_offsets,
    list_offsets,
)
from broker.cli.ending import UsageError, complain, ends_quietly, terminated_like_interrupted
from protocol.errors import ErrorCode

_POLL: Final = 1.0
_COMMIT_INTERVAL: Final = 5.0
_TIME_TO_LEAVE: Final = 5.0

_EPILOG: Final = """\
Reading begins at the end and goes on until Ctrl-C, as with Kafka's console consumer. With --no-follow it stops where
the topic ended when it began, as with kcat -e; since nothing is there after the end, it then begins at the beginning,
unless --offset says otherwise. A member of a group begins where the group is, and where that has no offset, there."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EPILOG
    parser.add_argument("topics", metavar="TOPIC", nargs="+")
    begin = parser.add_mutually_exclusive_group()
    begin.add_argument("--from-beginning", action="store_true", help="from the first record that there is")
    begin.add_argument(
        "--offset",
        metavar="N",
        type=_offset,
        help="from this offset, or earliest, latest, or -N: the last N of a partition",
    )
    parser.add_argument("--partition", metavar="0,1,2", type=partitions, help="only these partitions")
    parser.add_argument("--group", metavar="GROUP", help="as a member of this group, whose offsets move on")
    parser.add_argument("--max-messages", metavar="N", type=at_least(1), help="stop after so many")
    follow = parser.add_mutually_exclusive_group()
    follow.add_argument(
        "--follow", dest="follow", action="store_true", default=True, help="wait for more (the default)"
    )
    follow.add_argument("-e", "--no-follow", dest="follow", action="store_false", help="stop at the end")
    parser.add_argument(
        "--format",
        metavar="FORMAT",
        type=_format,
        default="text",
        help="text: values (the default); json: everything; or a line of fields, such as '%%t %%p %%o %%k %%v': "
        + record_format.FIELDS.replace("%", "%%"),
    )
    parser.add_argument(
        "--isolation",
        choices=["read_uncommitted", "read_committed"],
        default="read_uncommitted",
        help="read_committed leaves out what transactions have not committed",
    )
    parser.add_argument("-v", "--verbose", action="store_true", help="say on standard error what is read from where")
    add_connection(parser)


@ends_quietly
def run(options: argparse.Namespace) -> int:
    if options.group is not None and (options.partition is not None or options.offset is not None):
        raise UsageError("consume: in a group, --partition and --offset are the group's to decide")
    with client(options) as connected, terminated_like_interrupted():
        consumption = Consumption(connected, options)
        try:
            if options.group is None:
                consumption.read_alone()
            else:
                consumption.read_in_group()
        except KeyboardInterrupt:
            if not options.follow:
                raise
    return 0


class Consumption:
    def __init__(self, client: Client, options: argparse.Namespace) -> None:
        self._client = client
        self._options = options
        self._isolation = READ_COMMITTED if options.isolation == "read_committed" else READ_UNCOMMITTED
        self._left: int | None = options.max_messages
        self._read: dict[TopicPartition, int] = {}  # the offset after what has been written
        self._committed: dict[TopicPartition, int] = {}
        self._commit_due = 0.0

    def read_alone(self) -> None:
        found = self._client.partitions(self._options.topics)
        wanted = self._options.partition
        if wanted is not None:
            for topic in self._options.topics:
                for index in wanted:
                    if TopicPartition(topic, index) not in found:
                        raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"partition {topic}-{index}")
        self._read_from(self._begin([each for each in found if wanted is None or each.partition in wanted]))

    def read_in_group(self) -> None:
        self._client.topics(self._options.topics)  # one that does not exist is said now
        member = Member(self._client, self._options.group, self._options.topics)
        try:
            finished = False
            while not finished:
                assigned = member.join()
                self._read.clear()
                self._committed = committed_offsets(self._client, self._options.group)
                self._commit_due = time.monotonic() + _COMMIT_INTERVAL
                begin = {each: self._committed[each] for each in assigned if each in self._committed}
                begin |= self._begin([each for each in assigned if each not in begin])
                finished = self._read_from(begin, lambda: member.heartbeat() and self._commit_if_due(member))
                self._commit(member)
        finally:
            # An interrupted request has closed its connection; these make new ones.
            self._client.timeout = min(self._client.timeout, _TIME_TO_LEAVE)
            with suppress(ClientError):
                self._commit(member)
                member.leave()

    def _begin(self, chosen: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        bounds = begin_and_end(self._client, chosen, self._isolation)
        if self._options.offset is not None:
            return {each: start(self._options.offset, *bounds[each]) for each in chosen}
        from_beginning = self._options.from_beginning or not self._options.follow
        return {each: bounds[each][0 if from_beginning else 1] for each in chosen}

    def _read_from(self, begin: Mapping[TopicPartition, int], may_go_on: Callable[[], bool] = lambda: True) -> bool:
        """Write what there is. True when it is all done, False when it may not go on."""
        fetcher = Fetcher(self._client, begin, isolation=self._isolation, warn=complain)
        ends: dict[TopicPartition, int] = {}
        if not self._options.follow:
            ends = list_offsets(self._client, dict.fromkeys(begin, LATEST), self._isolation)
            fetcher.stop([each for each in begin if begin[each] >= ends[each]])
        if self._options.verbose:
            complain("reading " + (", ".join(f"{each} from {begin[each]}" for each in sorted(begin)) or "nothing"))
        while may_go_on():
            if not fetcher.positions and not self._options.follow:
                return True
            for partition, fetched in fetcher.poll(_POLL).items():
                position = self._write(partition, fetched)
                self._read[partition] = fetcher.positions[partition] = position
                if self._left == 0:
                    return True
                if position >= ends.get(partition, position + 1):
                    fetcher.stop([partition])
        return False

    def _write(self, partition: TopicPartition, fetched: Fetched) -> int:
        """Write records, and give the offset after them."""
        if self._left is not None and len(fetched.records) >= self._left:
            fetched = cut(fetched.records, self._left)
        sys.stdout.buffer.write(self._options.format(partition, fetched.records))
        sys.stdout.buffer.flush()
        if self._left is not None:
            self._left -= len(fetched.records)
        return fetched.next_offset

    def _commit_if_due(self, member: Member) -> bool:
        if time.monotonic() < self._commit_due:
            return True
        self._commit_due = time.monotonic() + _COMMIT_INTERVAL
        return self._commit(member)

    def _commit(self, member: Member) -> bool:
        news = {each: offset for each, offset in self._read.items() if self._committed.get(each) != offset}
        if news and not member.commit(news):
            return False
        self._committed |= news
        return True


def start(offset: int | str, begin: int, end: int) -> int:
    """Where to begin in a partition of these bounds."""
    if isinstance(offset, str):
        return begin if offset == "earliest" else end
    return max(end + offset, begin) if offset < 0 else offset


def _offset(text: str) -> int | str:
    if text in ("earliest", "latest"):
        return text
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not an offset, -N, earliest or latest") from None


def _format(text: str) -> record_format.Format:
    try:
        return record_format.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
