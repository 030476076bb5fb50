"""`barnabas acls`: who may do what, where an authorizer checks it."""

from __future__ import annotations

import argparse
from enum import IntEnum
from typing import Final

from barnabas.client.acl_admin import create_rules, delete_rules, list_rules
from barnabas.client.client import Client
from barnabas.client.requests.acls import Rule
from barnabas.command.arguments import add_action, add_client_actions
from barnabas.command.ending import UsageError
from barnabas.command.table import as_json, render
from barnabas.protocol.acls import CLUSTER_NAME, WILDCARD, AclOperation, PatternType, PermissionType, ResourceType

_COLUMNS: Final = {
    "resource": "RESOURCE",
    "name": "NAME",
    "pattern": "PATTERN",
    "principal": "PRINCIPAL",
    "host": "HOST",
    "permission": "PERMISSION",
    "operation": "OPERATION",
}
_RESOURCES: Final = {
    "--topic": ResourceType.TOPIC,
    "--group": ResourceType.GROUP,
    "--transactional-id": ResourceType.TRANSACTIONAL_ID,
    "--delegation-token": ResourceType.DELEGATION_TOKEN,
    "--user": ResourceType.USER,
}


def _word(value: IntEnum) -> str:
    return value.name.lower().replace("_", "-")


_OPERATIONS: Final = {_word(each): each for each in AclOperation if each > AclOperation.ANY}
_PERMISSIONS: Final = {_word(each): each for each in (PermissionType.ALLOW, PermissionType.DENY)}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = (
        "The broker must have an authorizer (authorizer.class.name). A principal is alice, User:alice, or '*' for\n"
        "everybody. As a name, '*' stands for all resources of a type."
    )
    actions = add_client_actions(parser)

    list_ = add_action(actions, "list", _list, "list rules")
    _add_filter(list_)

    create = add_action(actions, "create", _create, "allow or deny operations to a principal")
    create.add_argument("principal", metavar="PRINCIPAL", help="who: alice, User:alice, or '*'")
    create.add_argument(
        "operations", metavar="OPERATION", nargs="+", type=_operation, help=f"what: {', '.join(_OPERATIONS)}"
    )
    _add_resource(create, required=True)
    create.add_argument(
        "--host", metavar="ADDRESS", default=WILDCARD, help="only from this host (default: from everywhere)"
    )
    create.add_argument("--deny", action="store_true", help="deny instead of allow; denials win")

    delete = add_action(actions, "delete", _delete, "delete the rules that match all of these options, and print them")
    _add_filter(delete)
    delete.add_argument("--all", action="store_true", help="delete all rules")


def _add_resource(parser: argparse.ArgumentParser, *, required: bool) -> None:
    group = parser.add_mutually_exclusive_group(required=required)
    for option in _RESOURCES:
        group.add_argument(option, metavar="NAME", help=f"the {option[2:].replace('-', ' ')} of this name")
    group.add_argument("--cluster", action="store_true", help="the cluster")
    parser.add_argument("--prefixed", action="store_true", help="all whose names begin with the name")


def _add_filter(parser: argparse.ArgumentParser) -> None:
    _add_resource(parser, required=False)
    parser.add_argument("--principal", metavar="PRINCIPAL", help="rules for this principal")
    parser.add_argument("--operation", metavar="OPERATION", type=_operation, help="rules about this operation")
    parser.add_argument("--permission", choices=[*_PERMISSIONS], help="rules that allow, or that deny")
    parser.add_argument("--host", metavar="ADDRESS", help="rules for this host")


def _operation(text: str) -> AclOperation:
    found = _OPERATIONS.get(text.lower().replace("_", "-"))
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not one of {', '.join(_OPERATIONS)}")
    return found


def _principal(text: str) -> str:
    return text if ":" in text else f"User:{text}"


def _resource(options: argparse.Namespace) -> tuple[ResourceType, str | None, PatternType]:
    """The resources that options name; ANY if they name none."""
    pattern = PatternType.PREFIXED if options.prefixed else PatternType.LITERAL
    if options.cluster:
        if options.prefixed:
            raise UsageError("--prefixed does not apply to --cluster")
        return ResourceType.CLUSTER, CLUSTER_NAME, pattern
    for option, resource_type in _RESOURCES.items():
        name = getattr(options, option[2:].replace("-", "_"))
        if name is not None:
            return resource_type, name, pattern
    return ResourceType.ANY, None, PatternType.PREFIXED if options.prefixed else PatternType.ANY


def _chosen(options: argparse.Namespace) -> Rule:
    return Rule(
        *_resource(options),
        None if options.principal is None else _principal(options.principal),
        options.host,
        AclOperation.ANY if options.operation is None else options.operation,
        PermissionType.ANY if options.permission is None else _PERMISSIONS[options.permission],
    )


def _list(client: Client, options: argparse.Namespace) -> int:
    _print(list_rules(client, _chosen(options)), options)
    return 0


def _create(client: Client, options: argparse.Namespace) -> int:
    resource_type, name, pattern = _resource(options)
    permission = PermissionType.DENY if options.deny else PermissionType.ALLOW
    principal = _principal(options.principal)
    create_rules(
        client,
        [
            Rule(resource_type, name, pattern, principal, options.host, operation, permission)
            for operation in options.operations
        ],
    )
    return 0


def _delete(client: Client, options: argparse.Namespace) -> int:
    chosen = _chosen(options)
    if (chosen == Rule()) != options.all:
        raise UsageError("say which rules to delete, or --all" if not options.all else "--all takes no other option")
    _print(delete_rules(client, chosen), options)
    return 0


def _print(rules: list[Rule], options: argparse.Namespace) -> None:
    rows = [
        {
            "resource": _named(ResourceType, rule.resource_type),
            "name": rule.name,
            "pattern": _named(PatternType, rule.pattern_type),
            "principal": rule.principal,
            "host": rule.host,
            "permission": _named(PermissionType, rule.permission),
            "operation": _named(AclOperation, rule.operation),
        }
        for rule in rules
    ]
    print(as_json(rows) if options.json else render(_COLUMNS, rows))


def _named(kind: type[IntEnum], number: int) -> str:
    """A newer broker may have kinds that are not known here."""
    return _word(kind(number)) if number in kind.__members__.values() else str(number)
