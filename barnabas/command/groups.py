"""`barnabas groups`: list, describe and delete groups of every kind, and reset their offsets."""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any, Final, NoReturn

from barnabas.client.client import Client
from barnabas.client.errors import BrokerError, ClientError
from barnabas.client.group_admin import SHARE, Group, Member, delete_group, describe_group, list_groups
from barnabas.client.offsets import by_topic, committed_offsets, list_offsets
from barnabas.client.requests.data import LATEST
from barnabas.client.share_offsets import share_offsets
from barnabas.command import reset_offsets
from barnabas.command.arguments import add_action, add_client_actions
from barnabas.command.ending import UsageError, complain
from barnabas.command.table import as_json, render
from barnabas.command.values import duration
from barnabas.printable import printable

_LISTED: Final = {"group": "GROUP", "type": "TYPE", "protocol_type": "PROTOCOL-TYPE", "state": "STATE"}
_OFFSETS: Final = {
    "group": "GROUP",
    "topic": "TOPIC",
    "partition": "PARTITION",
    "current_offset": "CURRENT-OFFSET",
    "log_end_offset": "LOG-END-OFFSET",
    "lag": "LAG",
    "consumer_id": "CONSUMER-ID",
    "host": "HOST",
    "client_id": "CLIENT-ID",
}
_MEMBERS: Final = {
    "group": "GROUP",
    "consumer_id": "CONSUMER-ID",
    "group_instance_id": "GROUP-INSTANCE-ID",
    "host": "HOST",
    "client_id": "CLIENT-ID",
    "partitions": "#PARTITIONS",
    "assignment": "ASSIGNMENT",
}
_STATE: Final = {
    "group": "GROUP",
    "coordinator": "COORDINATOR",
    "coordinator_id": "COORDINATOR-ID",
    "assignor": "ASSIGNMENT-STRATEGY",
    "state": "STATE",
    "members": "#MEMBERS",
}

# Terminal codes: move to the top left corner, draw over the last table, and erase what remains of it.
_HOME: Final = "\x1b[H"
_ERASE_LINE: Final = "\x1b[K"
_ERASE_BELOW: Final = "\x1b[J"
_CLEAR: Final = "\x1b[2J"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = add_client_actions(parser)

    add_action(actions, "list", _list, "list all groups")

    describe = add_action(actions, "describe", _describe, "show offsets, lag, members or state of groups")
    describe.add_argument("groups", metavar="GROUP", nargs="*")
    describe.add_argument("--all-groups", action="store_true", help="every group")
    shown = describe.add_mutually_exclusive_group()
    shown.add_argument("--offsets", dest="shown", action="store_const", const="offsets", help="offsets (the default)")
    shown.add_argument("--members", dest="shown", action="store_const", const="members", help="members instead")
    shown.add_argument(
        "--state", dest="shown", action="store_const", const="state", help="the state of the group instead"
    )
    describe.set_defaults(shown="offsets")
    describe.add_argument("--watch", action="store_true", help="refresh until Ctrl-C")
    describe.add_argument(
        "--interval", metavar="DURATION", type=duration, default=1.0, help="how often --watch refreshes (default: 1s)"
    )

    delete = add_action(actions, "delete", _delete, "delete groups that have no members, with their offsets")
    delete.add_argument("groups", metavar="GROUP", nargs="+")

    reset = add_action(actions, "reset-offsets", reset_offsets.reset, "change the offsets of a group")
    reset_offsets.add_arguments(reset)


def _list(client: Client, options: argparse.Namespace) -> int:
    rows = [
        {
            "group": group.group_id,
            "type": group.group_type.lower(),
            "protocol_type": group.protocol_type,
            "state": group.group_state,
        }
        for group in list_groups(client)
    ]
    print(as_json(rows) if options.json else render(_LISTED, rows))
    return 0


def _delete(client: Client, options: argparse.Namespace) -> int:
    rows: list[dict[str, Any]] = []
    for group in options.groups:
        try:
            delete_group(client, group)
        except BrokerError as error:
            complain(error)
            rows.append({"group": group, "deleted": False, "error": str(error)})
        else:
            rows.append({"group": group, "deleted": True, "error": None})
            if not options.json:
                print(f"deleted group '{group}'")
    if options.json:
        print(as_json(rows))
    return 0 if all(row["deleted"] for row in rows) else 1


def _describe(client: Client, options: argparse.Namespace) -> int:
    if bool(options.groups) == options.all_groups:
        raise UsageError("groups describe: name the groups, or add --all-groups")
    text = _description(client, options)
    if not options.watch:
        print(text)
        return 0
    try:
        _watch(client, options, text)
    except KeyboardInterrupt:
        return 0


def _watch(client: Client, options: argparse.Namespace, text: str) -> NoReturn:
    """Show the description again and again. An error is shown in its place, since it may pass."""
    on_terminal = sys.stdout.isatty() and not options.json
    if on_terminal:
        sys.stdout.write(_CLEAR)
    while True:
        if on_terminal:
            sys.stdout.write(_HOME + text.replace("\n", f"{_ERASE_LINE}\n") + f"{_ERASE_LINE}\n{_ERASE_BELOW}")
        else:
            print(text if options.json else f"{text}\n")
        sys.stdout.flush()
        time.sleep(options.interval)
        try:
            text = _description(client, options)
        except ClientError as error:
            text = as_json({"error": str(error)}, one_line=True) if options.json else f"barnabas: {error}"


def _description(client: Client, options: argparse.Namespace) -> str:
    names = options.groups or [group.group_id for group in list_groups(client)]
    groups = [describe_group(client, name) for name in names]
    describe, columns = {
        "offsets": (_offsets, _OFFSETS),
        "members": (_members, _MEMBERS),
        "state": (_state, _STATE),
    }[options.shown]
    rows = [row for group in groups for row in describe(client, group)]
    if options.json:
        return as_json(rows, one_line=options.watch)
    idle = "".join(
        f"Group '{printable(group.group_id)}' has no active members.\n" for group in groups if not group.members
    )
    return idle + render(columns, rows)


def _offsets(client: Client, group: Group) -> list[dict[str, Any]]:
    """A row for each partition that has an offset or is assigned."""
    if group.group_type == SHARE:
        return _shared_offsets(client, group)
    committed = committed_offsets(client, group.group_id)
    owners = {partition: member for member in group.members for partition in member.assignment}
    partitions = sorted({*committed, *owners})
    # A group may have offsets in a topic that has been deleted since.
    ends = list_offsets(client, dict.fromkeys(client.existing(partitions), LATEST))
    return [
        {
            "group": group.group_id,
            "topic": partition.topic,
            "partition": partition.partition,
            "current_offset": committed.get(partition),
            "log_end_offset": ends.get(partition),
            "lag": lag(committed.get(partition), ends.get(partition)),
            **_owner(owners.get(partition)),
        }
        for partition in partitions
    ]


def _shared_offsets(client: Client, group: Group) -> list[dict[str, Any]]:
    """The current offset is that of the first record that is not done with. A partition belongs to nobody alone."""
    offsets = share_offsets(client, group.group_id)
    ends = list_offsets(client, dict.fromkeys(client.existing(list(offsets)), LATEST))
    return [
        {
            "group": group.group_id,
            "topic": partition.topic,
            "partition": partition.partition,
            "current_offset": found.start,
            "log_end_offset": ends.get(partition),
            "lag": found.lag,
            **_owner(None),
        }
        for partition, found in sorted(offsets.items())
    ]


def lag(committed: int | None, end: int | None) -> int | None:
    return None if committed is None or end is None else end - committed


def _owner(member: Member | None) -> dict[str, str | None]:
    if member is None:
        return {"consumer_id": None, "host": None, "client_id": None}
    return {"consumer_id": member.member_id, "host": member.host, "client_id": member.client_id}


def _members(client: Client, group: Group) -> list[dict[str, Any]]:
    return [
        {
            "group": group.group_id,
            **_owner(member),
            "group_instance_id": member.instance_id,
            "partitions": len(member.assignment),
            "assignment": dict(by_topic(member.assignment)),
        }
        for member in sorted(group.members, key=lambda member: member.member_id)
    ]


def _state(client: Client, group: Group) -> list[dict[str, Any]]:
    return [
        {
            "group": group.group_id,
            "coordinator": group.coordinator,
            "coordinator_id": group.coordinator_id,
            "assignor": group.assignor,
            "state": group.state,
            "members": len(group.members),
        }
    ]
