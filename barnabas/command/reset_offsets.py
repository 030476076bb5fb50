"""`barnabas groups reset-offsets`: change the offsets of a group that has no members.

It shows the new offsets, and sets them with --execute. An offset outside the log becomes the nearest one inside.
"""

from __future__ import annotations

import argparse
import csv
import re
import time
from collections.abc import Collection, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple

from barnabas.client.client import Client
from barnabas.client.errors import BrokerError, ClientError
from barnabas.client.group_admin import SHARE, Group, describe_group
from barnabas.client.offsets import begin_and_end, commit_offsets, committed_offsets, list_offsets
from barnabas.client.share_offsets import alter_share_offsets, share_offsets
from barnabas.command.ending import UsageError, complain
from barnabas.command.table import as_json, render
from barnabas.command.values import duration, moment, partitions
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.topic_partition import TopicPartition

_COLUMNS: Final = {
    "group": "GROUP",
    "topic": "TOPIC",
    "partition": "PARTITION",
    "current_offset": "CURRENT-OFFSET",
    "new_offset": "NEW-OFFSET",
}
_ISO_DURATION: Final = re.compile(
    r"P(?:(?P<days>\d+)D)?(?:T(?=\d)(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+(?:\.\d+)?)S)?)?"
)

Offsets = Mapping[TopicPartition, int]


class Scope(NamedTuple):
    """A topic and some of its partitions; None stands for all of them."""

    topic: str
    partitions: list[int] | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("groups", metavar="GROUP", nargs=1)
    parser.add_argument(
        "--topic",
        dest="topics",
        metavar="TOPIC[:0,1,2]",
        type=scope,
        action="append",
        default=[],
        help="a topic, or some of its partitions; may be repeated",
    )
    parser.add_argument("--all-topics", action="store_true", help="all partitions in which the group has an offset")
    parser.add_argument("--execute", action="store_true", help="set the offsets; without it, only show them")
    parser.add_argument(
        "--export", action="store_true", help="print lines of TOPIC,PARTITION,OFFSET, as --from-file reads them"
    )
    to = parser.add_mutually_exclusive_group(required=True)
    to.add_argument("--to-earliest", action="store_true", help="to the first record")
    to.add_argument("--to-latest", action="store_true", help="after the last record")
    to.add_argument("--to-current", action="store_true", help="where the group is now; the end, where it has no offset")
    to.add_argument("--to-offset", metavar="N", type=int, help="to this offset")
    to.add_argument("--shift-by", metavar="N", type=int, help="forward, or back if negative")
    to.add_argument(
        "--to-datetime",
        metavar="TIME",
        type=moment,
        help="to a time such as 2026-01-31T12:00:00.000, in UTC unless it names a zone",
    )
    to.add_argument(
        "--by-duration",
        metavar="DURATION",
        type=time_ago,
        help="back from now: 90s, 2h30m, or PT2H30M as Kafka writes it",
    )
    to.add_argument("--from-file", metavar="FILE", type=Path, help="lines of TOPIC,PARTITION,OFFSET")


def reset(client: Client, options: argparse.Namespace) -> int:
    (group,) = options.groups
    if options.from_file and (options.topics or options.all_topics):
        raise UsageError("groups reset-offsets: --from-file names the topics, so --topic and --all-topics do not apply")
    if not options.from_file and bool(options.topics) == options.all_topics:
        raise UsageError("groups reset-offsets: add --topic or --all-topics")
    is_shared = _without_members(client, group) == SHARE
    if is_shared:
        known = share_offsets(client, group)
        committed = {partition: found.start for partition, found in known.items() if found.start is not None}
    else:
        committed = committed_offsets(client, group)
    new = _planned(client, options, committed)
    if options.execute:
        (alter_share_offsets if is_shared else commit_offsets)(client, group, new)
    rows: list[dict[str, Any]] = [
        {
            "group": group,
            "topic": each.topic,
            "partition": each.partition,
            "current_offset": committed.get(each),
            "new_offset": new[each],
        }
        for each in sorted(new)
    ]
    if options.export:
        print("\n".join(f"{row['topic']},{row['partition']},{row['new_offset']}" for row in rows))
    else:
        print(as_json(rows) if options.json else render(_COLUMNS, rows))
    if not options.execute:
        complain("nothing was changed; add --execute to set these offsets")
    return 0


def _without_members(client: Client, group: str) -> str | None:
    """The kind of a group, if it exists. Members would continue from where they are, and commit that."""
    try:
        found: Group = describe_group(client, group)
    except BrokerError as error:
        if error.code != ErrorCode.GROUP_ID_NOT_FOUND:
            raise
        return None  # setting its offsets creates it
    if found.members or found.state not in ("Empty", "Dead"):
        raise ClientError(
            f"group '{group}' is {found.state} with {len(found.members)} members: "
            "offsets can be reset once all of them have left"
        )
    return found.group_type


def _planned(client: Client, options: argparse.Namespace, committed: Offsets) -> Offsets:
    if options.from_file:
        wanted = read_offsets(options.from_file)
        return within(wanted, begin_and_end(client, list(wanted)))
    chosen = _in_scope(client, options, committed)
    bounds = begin_and_end(client, chosen)
    if options.to_earliest:
        return {each: bounds[each][0] for each in chosen}
    if options.to_latest:
        return {each: bounds[each][1] for each in chosen}
    if options.to_current:
        return within({each: committed.get(each, bounds[each][1]) for each in chosen}, bounds)
    if options.to_offset is not None:
        return within(dict.fromkeys(chosen, options.to_offset), bounds)
    if options.shift_by is not None:
        return within(shifted(chosen, committed, options.shift_by), bounds)
    since = options.to_datetime
    if since is None:
        since = int(time.time() * 1000) - options.by_duration
    found = list_offsets(client, dict.fromkeys(chosen, since))
    return {each: bounds[each][1] if found[each] < 0 else found[each] for each in chosen}


def _in_scope(client: Client, options: argparse.Namespace, committed: Offsets) -> list[TopicPartition]:
    if options.all_topics:
        return client.existing(list(committed))
    known = client.partitions({each.topic for each in options.topics})
    chosen: list[TopicPartition] = []
    for topic, indexes in options.topics:
        if indexes is None:
            chosen += [each for each in known if each.topic == topic]
        else:
            chosen += [TopicPartition(topic, index) for index in indexes]
    return list(dict.fromkeys(chosen))


def shifted(chosen: Collection[TopicPartition], committed: Offsets, by: int) -> Offsets:
    for each in chosen:
        if each not in committed:
            raise ClientError(f"the group has no offset in {each} that could be shifted")
    return {each: committed[each] + by for each in chosen}


def within(wanted: Offsets, bounds: Mapping[TopicPartition, tuple[int, int]]) -> Offsets:
    return {each: min(max(offset, bounds[each][0]), bounds[each][1]) for each, offset in wanted.items()}


def read_offsets(file: Path) -> Offsets:
    offsets = {}
    with file.open(newline="", errors="replace") as lines:
        for number, row in enumerate(csv.reader(lines), 1):
            if not row:
                continue
            try:
                topic, partition, offset = row
                offsets[TopicPartition(topic, int(partition))] = int(offset)
            except ValueError:
                raise ClientError(f"{file}:{number}: {','.join(row)!r} is not TOPIC,PARTITION,OFFSET") from None
    return offsets


def scope(text: str) -> Scope:
    """TOPIC or TOPIC:0,1,2. Names of topics contain no colon."""
    topic, colon, indexes = text.partition(":")
    if not topic:
        raise argparse.ArgumentTypeError(f"{text!r} names no topic")
    return Scope(topic, partitions(indexes) if colon else None)


def time_ago(text: str) -> int:
    """Milliseconds, from a duration as everywhere, or in ISO 8601 (PnDTnHnMnS) as in Kafka's own tool."""
    found = _ISO_DURATION.fullmatch(text)
    if found is None or not any(found.groups()):
        return int(duration(text) * 1000)
    parts = {unit: float(number) for unit, number in found.groupdict("0").items()}
    return timedelta(**parts) // timedelta(milliseconds=1)
