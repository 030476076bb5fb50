"""`barnabas groups reset-offsets`: move how far a group has read, while nobody reads.

What is to happen is shown; it happens with --execute. An offset that the log does not have becomes the nearest that it
has.
"""

from __future__ import annotations

import argparse
import csv
import re
import time
from collections.abc import Collection, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple

from broker.cli.arguments import partitions
from broker.cli.client.client import Client, TopicPartition
from broker.cli.client.errors import BrokerError, ClientError
from broker.cli.client.group_admin import Group, describe_group
from broker.cli.client.offsets import begin_and_end, commit_offsets, committed_offsets, list_offsets
from broker.cli.ending import UsageError, complain
from broker.cli.table import as_json, render
from protocol.errors import ErrorCode

_COLUMNS: Final = {
    "group": "GROUP",
    "topic": "TOPIC",
    "partition": "PARTITION",
    "current_offset": "CURRENT-OFFSET",
    "new_offset": "NEW-OFFSET",
}
_DURATION: Final = re.compile(
    r"P(?:(?P<days>\d+)D)?(?:T(?=\d)(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+(?:\.\d+)?)S)?)?"
)

Offsets = Mapping[TopicPartition, int]


class Scope(NamedTuple):
    """A topic, and which of its partitions; None is all of them."""

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
        help="may be repeated",
    )
    parser.add_argument("--all-topics", action="store_true", help="every partition that the group has an offset in")
    parser.add_argument("--execute", action="store_true", help="do it; without this, only show what would be done")
    parser.add_argument(
        "--export", action="store_true", help="print TOPIC,PARTITION,OFFSET lines, as --from-file reads"
    )
    to = parser.add_mutually_exclusive_group(required=True)
    to.add_argument("--to-earliest", action="store_true", help="the first record that there is")
    to.add_argument("--to-latest", action="store_true", help="after the last record")
    to.add_argument("--to-current", action="store_true", help="where the group is, or the end where it never was")
    to.add_argument("--to-offset", metavar="N", type=int)
    to.add_argument("--shift-by", metavar="N", type=int, help="forward, or back if negative")
    to.add_argument(
        "--to-datetime", metavar="TIME", type=moment, help="2026-01-31T12:00:00.000, in UTC unless it says otherwise"
    )
    to.add_argument(
        "--by-duration", metavar="DURATION", type=duration, help="back from now, such as P1DT2H30M or PT90S"
    )
    to.add_argument("--from-file", metavar="FILE", type=Path, help="lines of TOPIC,PARTITION,OFFSET")


def reset(client: Client, options: argparse.Namespace) -> int:
    (group,) = options.groups
    if options.from_file and (options.topics or options.all_topics):
        raise UsageError(
            "groups reset-offsets: --from-file says which topics, so --topic and --all-topics do not go with it"
        )
    if not options.from_file and bool(options.topics) == options.all_topics:
        raise UsageError("groups reset-offsets: say which topics, with --topic or --all-topics")
    _refuse_while_it_has_members(client, group)
    committed = committed_offsets(client, group)
    new = _planned(client, options, committed)
    if options.execute:
        commit_offsets(client, group, new)
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
        complain("nothing was changed; --execute does it")
    return 0


def _refuse_while_it_has_members(client: Client, group: str) -> None:
    """A member would go on from where it is, and commit that."""
    try:
        found: Group = describe_group(client, group)
    except BrokerError as error:
        if error.code != ErrorCode.GROUP_ID_NOT_FOUND:
            raise
        return  # it comes into being with its offsets
    if found.members or found.state not in ("Empty", "Dead"):
        raise ClientError(
            f"group '{group}' is {found.state} with {len(found.members)} members: "
            "offsets can be reset once all of them have left"
        )


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
            raise ClientError(f"the group has no offset in {each}, so there is nothing to shift")
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
    """No topic's name has a colon."""
    topic, colon, indexes = text.partition(":")
    if not topic:
        raise argparse.ArgumentTypeError(f"{text!r} names no topic")
    return Scope(topic, partitions(indexes) if colon else None)


def moment(text: str) -> int:
    """Milliseconds since 1970."""
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time such as 2026-01-31T12:00:00.000") from None
    if parsed.tzinfo is None:
        parsed = parsed.replace(tzinfo=UTC)
    return (parsed - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


def duration(text: str) -> int:
    """ISO 8601's PnDTnHnMnS, in milliseconds."""
    found = _DURATION.fullmatch(text)
    if found is None or not any(found.groups()):
        raise argparse.ArgumentTypeError(f"{text!r} is not a duration such as P1DT2H30M or PT90S")
    return timedelta(**{unit: float(number) for unit, number in found.groupdict("0").items()}) // timedelta(
        milliseconds=1
    )
