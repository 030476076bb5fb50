"""`barnabas consume`: print the records of topics, alone or as a member of a group."""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from typing import Final

from barnabas.client.client import Client
from barnabas.client.errors import BrokerError, ClientError
from barnabas.client.fetched import Fetched, cut
from barnabas.client.fetcher import Fetcher
from barnabas.client.member import Member
from barnabas.client.offsets import READ_COMMITTED, READ_UNCOMMITTED, committed_offsets, list_offsets
from barnabas.client.requests.data import LATEST
from barnabas.client.subscription import Subscription
from barnabas.command import positions, record_format
from barnabas.command.arguments import add_connection, client
from barnabas.command.ending import UsageError, complain, terminated_like_interrupted
from barnabas.command.values import at_least, partitions
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.topic_partition import TopicPartition

_POLL: Final = 1.0
_COMMIT_INTERVAL: Final = 5.0
_TIME_TO_LEAVE: Final = 5.0
# How often to look for new partitions, and for new topics that match a pattern.
_LOOK_INTERVAL: Final = 3.0

_EPILOG: Final = r"""examples:
  barnabas consume orders                                  new records, until Ctrl-C
  barnabas consume orders -e                               everything that is there, then stop
  barnabas consume orders -e -o -10 -f '%p %o %k: %v'      the last ten of each partition
  barnabas consume --regex 'orders-.*' --group billing     as a member of a group

Reading starts at the end and continues until Ctrl-C, as with Kafka's console consumer. With -e it stops at what was the
end when it started, as with kcat, and therefore starts at the beginning unless -o says otherwise. A member of a group
starts at the group's offsets; where there are none, it starts as it would without a group. Topics that match a pattern,
and partitions that are added, are read from their beginning when they appear."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EPILOG
    parser.add_argument("topics", metavar="TOPIC", nargs="+")
    parser.add_argument(
        "-r",
        "--regex",
        action="store_true",
        help="each TOPIC is a regular expression that matches whole names; new topics that match are read as well",
    )
    begin = parser.add_mutually_exclusive_group()
    begin.add_argument("--from-beginning", action="store_true", help="start at the first record")
    begin.add_argument(
        "-o",
        "--offset",
        metavar="POSITION",
        type=positions.position,
        help=f"where to begin: {positions.EXPLAINED}",
    )
    parser.add_argument("-p", "--partition", metavar="0,1,2", type=partitions, help="only these partitions")
    parser.add_argument("-g", "--group", metavar="GROUP", help="read as a member of this group, and commit its offsets")
    parser.add_argument("-c", "--max-messages", metavar="N", type=at_least(1), help="stop after N records")
    follow = parser.add_mutually_exclusive_group()
    follow.add_argument(
        "--follow", dest="follow", action="store_true", default=True, help="wait for more records (the default)"
    )
    follow.add_argument("-e", "--no-follow", dest="follow", action="store_false", help="stop at the end")
    output = parser.add_mutually_exclusive_group()
    output.add_argument(
        "-f",
        "--format",
        metavar="FORMAT",
        type=_format,
        default="text",
        help="a line per record with these fields, such as '%%t %%p %%o %%k %%v': "
        + record_format.FIELDS.replace("%", "%%")
        + "; or text, which is the value alone (default: text)",
    )
    output.add_argument(
        "--json",
        dest="format",
        action="store_const",
        const=record_format.as_json,
        help="a JSON object per record, as 'produce --json' reads it",
    )
    parser.add_argument(
        "--isolation",
        choices=["read_uncommitted", "read_committed"],
        default="read_uncommitted",
        help="read_committed leaves out records of transactions that are open or aborted (default: read_uncommitted)",
    )
    parser.add_argument("-v", "--verbose", action="store_true", help="say on standard error what is read")
    add_connection(parser, "how long to wait for an answer, not for records")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    if options.group is not None and (options.partition is not None or options.offset is not None):
        raise UsageError("consume: in a group, -p and -o do not apply: the group decides what its members read")
    try:
        subscription = Subscription(options.topics, regex=options.regex)
    except re.error as error:
        raise UsageError(f"consume: {error.pattern!r} is not a regular expression: {error}") from None
    with client(options) as connected, terminated_like_interrupted():
        consumption = Consumption(connected, subscription, options)
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
    def __init__(self, client: Client, subscription: Subscription, options: argparse.Namespace) -> None:
        self._client = client
        self._subscription = subscription
        self._options = options
        self._isolation = READ_COMMITTED if options.isolation == "read_committed" else READ_UNCOMMITTED
        self._left: int | None = options.max_messages
        self._read: dict[TopicPartition, int] = {}  # the offset after what has been written
        self._committed: dict[TopicPartition, int] = {}
        self._commit_due = 0.0
        self._look_due = 0.0
        # The partitions at the beginning. All records of those that appear later are new.
        self._known = self._first_look()

    def read_alone(self) -> None:
        if not self._subscription.regex:
            for topic in self._options.topics:
                for index in self._options.partition or ():
                    if TopicPartition(topic, index) not in self._known:
                        raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"partition {topic}-{index}")
        fetcher = self._fetcher(self._begin(self._known))
        self._look_due = time.monotonic() + _LOOK_INTERVAL
        self._copy(fetcher, lambda: self._look(fetcher))

    def read_in_group(self) -> None:
        member = Member(self._client, self._options.group, self._subscription)
        try:
            finished = False
            while not finished:
                assigned = member.join()
                self._read.clear()
                self._committed = committed_offsets(self._client, self._options.group)
                self._commit_due = time.monotonic() + _COMMIT_INTERVAL
                begin = {each: self._committed[each] for each in assigned if each in self._committed}
                begin |= self._begin([each for each in assigned if each not in begin])
                finished = self._copy(self._fetcher(begin), lambda: member.heartbeat() and self._commit_if_due(member))
                self._commit(member)
        finally:
            # An interrupted request has closed its connection. These open new ones.
            self._client.timeout = min(self._client.timeout, _TIME_TO_LEAVE)
            with suppress(ClientError):
                self._commit(member)
                member.leave()

    def _first_look(self) -> set[TopicPartition]:
        found = self._partitions()
        if not found and self._subscription.regex:
            patterns = " or ".join(map(repr, self._options.topics))
            if not self._options.follow:
                raise ClientError(f"no topic matches {patterns}")
            complain(f"no topic matches {patterns} yet; waiting for one")
        return found

    def _partitions(self) -> set[TopicPartition]:
        """All partitions that are to be read, as far as they exist."""
        wanted = self._options.partition
        found = self._client.partitions(self._subscription.current(self._client))
        return {each for each in found if wanted is None or each.partition in wanted}

    def _look(self, fetcher: Fetcher) -> bool:
        """Now and then, start reading new partitions, and stop reading those of deleted topics."""
        if not self._options.follow or time.monotonic() < self._look_due:
            return True
        self._look_due = time.monotonic() + _LOOK_INTERVAL
        found = self._partitions()
        fetcher.stop([each for each in fetcher.positions if each not in found])
        self._known &= found
        new = self._begin([each for each in found if each not in fetcher.positions])
        fetcher.positions |= new
        if new:
            self._say_what_is_read(new)
        return True

    def _begin(self, chosen: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        where = self._options.offset
        if where is None:
            from_beginning = self._options.from_beginning or not self._options.follow
            where = positions.EARLIEST if from_beginning else positions.LATEST
        known = [each for each in chosen if each in self._known]
        new = [each for each in chosen if each not in self._known]
        return {
            **positions.resolve(self._client, where, known, self._isolation),
            **positions.resolve(self._client, positions.EARLIEST, new, self._isolation),
        }

    def _fetcher(self, begin: Mapping[TopicPartition, int]) -> Fetcher:
        self._say_what_is_read(begin)
        return Fetcher(self._client, begin, isolation=self._isolation, warn=complain)

    def _say_what_is_read(self, begin: Mapping[TopicPartition, int]) -> None:
        if self._options.verbose:
            complain("reading " + (", ".join(f"{each} from {begin[each]}" for each in sorted(begin)) or "nothing"))

    def _copy(self, fetcher: Fetcher, may_go_on: Callable[[], bool]) -> bool:
        """Write the records. True when all of them are written, False if it must stop."""
        ends: dict[TopicPartition, int] = {}
        if not self._options.follow:
            ends = list_offsets(self._client, dict.fromkeys(fetcher.positions, LATEST), self._isolation)
            fetcher.stop([each for each, end in ends.items() if fetcher.positions[each] >= end])
        while may_go_on():
            if not fetcher.positions and not self._options.follow:
                return True
            for partition, fetched in self._poll(fetcher).items():
                position = self._write(partition, fetched)
                self._read[partition] = fetcher.positions[partition] = position
                if self._left == 0:
                    return True
                if position >= ends.get(partition, position + 1):
                    fetcher.stop([partition])
        return False

    def _poll(self, fetcher: Fetcher) -> dict[TopicPartition, Fetched]:
        try:
            return fetcher.poll(_POLL)
        except BrokerError as error:
            # A topic that was deleted is not an error if a pattern chose it.
            if not self._subscription.regex or error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
            existing = self._client.existing(list(fetcher.positions))
            fetcher.stop([each for each in fetcher.positions if each not in existing])
            return {}

    def _write(self, partition: TopicPartition, fetched: Fetched) -> int:
        """Write records, and return the offset after them."""
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


def _format(text: str) -> record_format.Format:
    try:
        return record_format.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
