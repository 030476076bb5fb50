"""Access rules, as an administrator sees them."""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.client.client import Client
from barnabas.client.errors import check
from barnabas.client.requests.acls import Rule, create_acls, delete_acls, describe_acls
from barnabas.protocol.messages.create_acls import CreateAclsResponse
from barnabas.protocol.messages.delete_acls import DeleteAclsResponse
from barnabas.protocol.messages.describe_acls import DescribeAclsResponse


def list_rules(client: Client, chosen: Rule) -> list[Rule]:
    """The rules that a filter chooses, sorted."""

    def attempt() -> list[Rule]:
        answer = client.controller().ask(describe_acls(chosen), DescribeAclsResponse)
        check(answer.error_code, "ACLs", answer.error_message)
        return [
            Rule(
                resource.resource_type,
                resource.resource_name,
                resource.pattern_type,
                acl.principal,
                acl.host,
                acl.operation,
                acl.permission_type,
            )
            for resource in answer.resources
            for acl in resource.acls
        ]

    return _sorted(client.settled(attempt))


def create_rules(client: Client, rules: Iterable[Rule]) -> None:
    request = create_acls(*rules)

    def attempt() -> None:
        for result in client.controller().ask(request, CreateAclsResponse).results:
            check(result.error_code, "ACLs", result.error_message)

    client.settled(attempt)


def delete_rules(client: Client, chosen: Rule) -> list[Rule]:
    """Delete the rules that a filter chooses. Returns them."""

    def attempt() -> list[Rule]:
        (result,) = client.controller().ask(delete_acls(chosen), DeleteAclsResponse).filter_results
        check(result.error_code, "ACLs", result.error_message)
        for acl in result.matching_acls:
            check(acl.error_code, "ACLs", acl.error_message)
        return [
            Rule(
                acl.resource_type,
                acl.resource_name,
                acl.pattern_type,
                acl.principal,
                acl.host,
                acl.operation,
                acl.permission_type,
            )
            for acl in result.matching_acls
        ]

    return _sorted(client.settled(attempt))


def _sorted(rules: Iterable[Rule]) -> list[Rule]:
    """By resource, then by principal; brokers return them in any order."""
    return sorted(rules, key=lambda rule: (rule[:3], rule[3:]))
