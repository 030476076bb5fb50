"""Who led a partition when, and why it changed: from what the brokers of this process have noted."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from barnabas.broker.console.stories import duration
from barnabas.broker.replica.moments import RoleChange

if TYPE_CHECKING:
    from barnabas.broker.local_cluster import LocalCluster, NodeEvent

Json = dict[str, Any]
_Noted = tuple[int, RoleChange]  # the broker that noted it, and what

_TOLD: Final = 50
# What happened to a broker explains a change of leaders that comes so soon after it.
_EXPLAINED_MS: Final = 60_000
_GONE: Final = ("was killed", "was stopped", "was cut off from the others")


def leader_changes(cluster: LocalCluster, is_wanted: Callable[[str], bool]) -> list[Json]:
    """Newest first: each time that a partition got another leader, with what its followers did."""
    noted: list[_Noted] = []
    for node in cluster.nodes.values():
        for moments in (node.past, None if node.broker is None else node.broker.replicas.moments):
            noted += [] if moments is None else [(node.broker_id, role) for role in moments.roles]
    noted = [each for each in noted if is_wanted(each[1].topic)]
    noted.sort(key=lambda each: each[1].at_ms)
    of_partition: dict[tuple[str, int], dict[int, list[_Noted]]] = {}
    for broker_id, role in noted:
        epochs = of_partition.setdefault((role.topic, role.partition), {})
        epochs.setdefault(role.leader_epoch, []).append((broker_id, role))
    told = [
        change
        for epochs in of_partition.values()
        for epoch in sorted(epochs)
        if (change := _told(epoch, epochs, list(cluster.events))) is not None
    ]
    told.sort(key=lambda change: -int(change["at_ms"]))
    return told[:_TOLD]


def _told(epoch: int, epochs: dict[int, list[_Noted]], events: list[NodeEvent]) -> Json | None:
    lead = next((role for broker_id, role in epochs[epoch] if role.leader_id == broker_id), None)
    before = max((each for each in epochs if each < epoch), default=None)
    former = None if before is None else _leader(epochs[before])
    if lead is None or former in (None, lead.leader_id):
        return None  # it begins, or goes on with the same leader
    why = _why(former, lead, events)
    followers = [
        {"at_ms": role.at_ms, "broker": broker_id, "cut_from": role.cut_from, "end_offset": role.end_offset}
        for broker_id, role in epochs[epoch]
        if broker_id != lead.leader_id
    ]
    return {
        "at_ms": lead.at_ms,
        "topic": lead.topic,
        "partition": lead.partition,
        "epoch": epoch,
        "leader": lead.leader_id,
        "former": former,
        "isr": list(lead.isr),
        "offset": lead.end_offset,
        "followers": followers,
        "words": _words(lead, former, why, followers),
    }


def _leader(noted: list[_Noted]) -> int | None:
    return next((role.leader_id for _, role in reversed(noted) if role.leader_id >= 0), None)


def _why(former: int | None, lead: RoleChange, events: list[NodeEvent]) -> NodeEvent | None:
    """What happened to the former leader, or of the new one, shortly before."""
    for event in reversed(events):
        if lead.at_ms - _EXPLAINED_MS <= event.at_ms <= lead.at_ms and (
            (event.broker_id == former and event.what in _GONE)
            or (event.broker_id == lead.leader_id and event.what not in _GONE)
        ):
            return event
    return None


def _words(lead: RoleChange, former: int | None, why: NodeEvent | None, followers: list[Json]) -> list[str]:
    when = "Since then" if why is None else f"{duration(lead.at_ms - why.at_ms)} later"
    words = [
        f"Broker {why.broker_id} {why.what}." if why else "The controller chose another leader.",
        f"{when} broker {lead.leader_id} leads instead of {former}, in epoch {lead.leader_epoch} and from offset "
        f"{lead.end_offset} on.",
    ]
    others = [str(each) for each in lead.isr if each != lead.leader_id]
    words.append(f"In sync with it: {', '.join(others)}." if others else "Nobody else is in sync with it.")
    for each in followers:
        if each["cut_from"] is not None:
            words.append(
                f"Broker {each['broker']} cut its log back from {each['cut_from']} to {each['end_offset']}: "
                "what it had beyond was never committed."
            )
    return words
