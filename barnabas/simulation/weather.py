"""Weathers: runs in which one kind of trouble comes again and again, because a single blow seldom meets the moment in
which something is being done.

Most seeds have no weather of their own; some do, and an exhibit of the museum may ask for one. Each weather is a
function from the plan that was drawn to one with other faults, and with the settings and clients that these are for.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, NamedTuple

from barnabas.simulation.plan import RACK_AWARE, ClientPlan, Fault, Plan

Weather = Callable[[random.Random, Plan], Plan]

_FIRST: Final = 3.0  # topics are there
_QUIET_AT_THE_END: Final = 2.0

_FAST: Final = (0.0002, 0.001)
_MANY: Final = tuple(f"d{number}" for number in range(6))  # topics that may be deleted
_SLOW_NETWORK: Final = ((0.005, 0.05), (0.05, 0.3))
_IN_TIME: Final = ((0.0002, 0.001), (0.005, 0.05))  # for brokers that wait 700 ms for an answer
_SLOW_REGISTRY: Final = (0.02, 0.2)


class _Trouble(NamedTuple):
    """What happens again and again: how often which kind, how long apart, for how long, and to whom."""

    kinds: dict[str, int]
    whom: dict[str, int]
    pauses: tuple[float, ...]
    lengths: tuple[float, ...]

    def draw(self, chance: random.Random, plan: Plan, brokers: int = 0) -> tuple[Fault, ...]:
        """One fault after the other, each for a while, until shortly before the end."""
        brokers = brokers or plan.brokers
        faults = []
        at = _FIRST
        while at < plan.seconds - _QUIET_AT_THE_END:
            faults.append(
                Fault(
                    round(at, 3),
                    _one_of(chance, self.kinds),
                    chance.randint(1, brokers),
                    round(chance.choice(self.lengths) * chance.uniform(0.5, 1.5), 3),
                    chance.randint(1, brokers),
                    _one_of(chance, self.whom),
                )
            )
            at += chance.choice(self.pauses) * chance.random()
        return tuple(faults)


def _one_of(chance: random.Random, weights: dict[str, int]) -> str:
    return chance.choices(list(weights), list(weights.values()))[0]


def _with_clients(plan: Plan, change: Callable[[ClientPlan], ClientPlan | None], *more: ClientPlan) -> Plan:
    changed = [new for each in plan.clients if (new := change(each)) is not None]
    names = {each.name for each in changed}
    return replace(plan, clients=(*changed, *(each for each in more if each.name not in names)))


def _set(each: ClientPlan, **settings: Any) -> ClientPlan:
    return replace(each, settings={**each.settings, **settings})


def _busy(plan: Plan, pause: tuple[float, float]) -> Plan:
    """Producers that hardly pause."""
    return _with_clients(
        plan,
        lambda each: _set(each, pause=list(pause)) if each.kind in ("producer", "transactional") else each,
    )


def _admin(
    plan: Plan,
    may: list[str],
    pause: tuple[float, float],
    deletable: tuple[str, ...] = (),
    **settings: Any,
) -> Plan:
    names = [name for name, _ in plan.topics]
    admin = ClientPlan(
        "admin",
        "admin",
        {
            "topics": names,
            "deletable": list(deletable),
            "replication": plan.replication,
            "pause": list(pause),
            "may": may,
            "until": plan.seconds - _QUIET_AT_THE_END,
            **settings,
        },
    )
    others = _with_clients(plan, lambda each: None if each.kind == "admin" else each, admin)
    return replace(others, deletable=deletable) if deletable else others


# --- the weathers ---


_STORM: Final = _Trouble(
    {"registry expire": 10, "kill": 2, "slow link": 2, "one way": 2, "no controller": 1},
    whom={"leader": 7, "": 4, "controller": 1},
    pauses=(0.05, 0.3, 1.5),
    lengths=(0.3, 1.0, 3.0),
)


def storm(chance: random.Random, plan: Plan) -> Plan:
    """Sessions are lost all the time: leaders change, and their orders and answers come late."""
    return replace(
        plan,
        faults=_STORM.draw(chance, plan),
        session_timeout=1.5,
        delay=chance.choice(_SLOW_NETWORK),
    )


_CAROUSEL: Final = _Trouble(
    {"next leader": 12, "deaf": 2, "slow link": 2, "one way": 2, "pause": 2, "slow registry": 1, "kill": 1},
    whom={"joined": 5, "leader": 4, "": 5, "controller": 1},
    pauses=(0.1, 0.4, 1.2),
    lengths=(0.2, 0.6, 1.5),
)


def carousel(chance: random.Random, plan: Plan) -> Plan:
    """Leaders take turns while all of them are alive, and followers fall out of sync and come back."""
    delay, lag_times = chance.choice((((0.005, 0.05), (300, 600)), ((0.05, 0.3), (1600,))))  # a fetch must be in time
    plan = replace(
        plan,
        brokers=3,
        clock_rates=plan.clock_rates[:3],
        topics=(("t0", chance.choice((1, 1, 2))),),
        unclean=(),
        faults=_CAROUSEL.draw(chance, plan, 3),
        settings=plan.settings
        | {
            "replica.lag.time.max.ms": str(chance.choice(lag_times)),
            "replica.fetch.wait.max.ms": "150",
        },
        delay=delay,
        registry_delay=chance.choice(((0.0002, 0.001), (0.02, 0.2))),
        topic_settings=plan.topic_settings | {"min.insync.replicas": chance.choice(("1", "1", "2"))},
    )
    plan = _with_clients(plan, lambda each: None if each.kind in ("consumer", "admin") else _set(each, topics=["t0"]))
    return _busy(plan, (0.01, 0.15))


_SOLITUDE: Final = _Trouble(
    {"deaf": 3, "isolate brokers": 5, "mute": 1},
    whom={"controller": 5, "leader": 2, "": 1},
    pauses=(1.0, 6.0),
    lengths=(6.0, 9.0),
)


def solitude(chance: random.Random, plan: Plan) -> Plan:
    """A leader is cut off from its followers, and nobody is dead: ISRs shrink to one, and hardly anybody writes."""
    plan = replace(
        plan,
        faults=_SOLITUDE.draw(chance, plan),
        settings=plan.settings | {"replica.lag.time.max.ms": str(chance.choice((500, 1000)))},
        topic_settings=plan.topic_settings | {"min.insync.replicas": "2"},
    )
    plan = _with_clients(plan, lambda each: None if each.kind == "admin" or each.name == "plain" else each)
    return _busy(plan, chance.choice(((0.3, 1.0), (1.0, 4.0))))


_MOVES: Final = _Trouble(
    {
        "late orders": 5,
        "stuck connections": 5,
        "no controller": 4,
        "one way": 2,
        "deaf": 1,
        "registry expire": 1,
        "kill": 1,
        "stop": 1,
    },
    whom={"": 2, "controller": 3, "leader": 1, "moving": 3, "created": 3},
    pauses=(0.3, 1.0, 2.0),
    lengths=(0.3, 1.0, 2.0),
)


def moves(chance: random.Random, plan: Plan) -> Plan:
    """Topics are deleted, created and moved without pause, and orders come late, or twice."""
    plan = replace(
        plan,
        brokers=4,
        clock_rates=(1.0,) * 4,
        faults=_MOVES.draw(chance, plan, 4),
        settings=plan.settings | {"request.timeout.ms": "700", "replica.lag.time.max.ms": "2000"},
        session_timeout=1.5,
        delay=chance.choice(_IN_TIME),
    )
    plan = replace(plan, topics=(("t0", 1),), unclean=())
    plan = _with_clients(
        plan, lambda each: _set(each, topics=["t0"]) if each.name in ("idempotent", "reader") else None
    )
    plan = _busy(plan, (0.2, 0.5))
    may = ["delete", "create", "create", "reassign", "reassign", "move and cancel", "delete", "move and delete"]
    return _admin(plan, may, chance.choice(((0.05, 0.3), (0.2, 0.6))), ("d0", "d1", "d2"))


_LATECOMERS: Final = _Trouble(
    {"clients unheard": 8, "registry expire": 2, "next leader": 1},
    whom={"leader": 5, "": 3},
    pauses=(0.3, 1.0, 3.0),
    lengths=(4.0, 6.0, 8.0),
)


def latecomers(chance: random.Random, plan: Plan) -> Plan:
    """What transactional producers have sent arrives long after they have given up."""
    plan = replace(
        plan,
        faults=_LATECOMERS.draw(chance, plan),
    )
    names = [name for name, _ in plan.topics]
    producers = [
        ClientPlan(
            "transactional",
            f"txn{number}",
            {"topics": names, "implicit": False, "pause": [0.05, 0.3], "request_timeout_ms": 1000, "patience": 2.0},
        )
        for number in range(3, 6)
    ]
    return _with_clients(plan, lambda each: None if each.kind in ("consumer", "admin") else each, *producers)


_ECHOES: Final = _Trouble(
    {"mute": 2, "deaf": 2, "one way": 4, "slow link": 2, "stuck connections": 4, "registry expire": 1},
    whom={"": 3, "leader": 3},
    pauses=(0.3, 1.0, 2.0),
    lengths=(1.0, 2.0, 4.0),
)


def echoes(chance: random.Random, plan: Plan) -> Plan:
    """Brokers ask each other again, because the answer was late, and both requests are carried out."""
    plan = replace(
        plan,
        faults=_ECHOES.draw(chance, plan),
        settings=plan.settings | {"request.timeout.ms": "700"},
        delay=chance.choice(_IN_TIME),
    )
    names = [name for name, _ in plan.topics]
    producers = [
        ClientPlan("transactional", f"txn{number}", {"topics": names, "implicit": True, "pause": [0.02, 0.2]})
        for number in range(3, 6)
    ]
    # The protocol of older clients has no answer to a marker that comes twice (KIP-890).
    return _with_clients(plan, lambda each: None if each.kind in ("transactional", "admin") else each, *producers)


_CLOSEST: Final = _Trouble(
    {"deaf": 4, "one way": 4, "pause": 1, "next leader": 2, "slow link": 1},
    whom={"": 3, "leader": 1},
    pauses=(0.5, 1.5, 3.0),
    lengths=(1.0, 3.0, 5.0),
)


def closest(chance: random.Random, plan: Plan) -> Plan:
    """Consumers read from followers, which fall out of sync while consumers reach them."""
    plan = replace(
        plan,
        brokers=3,
        clock_rates=(1.0,) * 3,
        racks=3,
        faults=_CLOSEST.draw(chance, plan, 3),
        settings=plan.settings
        | {"replica.lag.time.max.ms": "800", "replica.fetch.wait.max.ms": "200", "replica.selector.class": RACK_AWARE},
    )
    names = [name for name, _ in plan.topics]
    readers = [
        ClientPlan(
            "reader",
            f"reader{number}",
            {
                "topics": names,
                "committed_only": number == 2,
                "rack": f"rack{number}",
                "max_wait_ms": 1500,
                "lease": 5.0,
            },
        )
        for number in range(3)
    ]
    return _busy(
        _with_clients(plan, lambda each: None if each.kind in ("consumer", "admin") else each, *readers), (0.1, 0.5)
    )


_INTERREGNUM: Final = _Trouble(
    {"registry cut": 5, "no controller": 5, "registry expire": 3, "slow registry": 2, "kill": 1},
    whom={"elected": 5, "controller": 4, "": 1},
    pauses=(0.5, 2.0, 4.0),
    lengths=(),
)


def interregnum(chance: random.Random, plan: Plan) -> Plan:
    """Controllers are elected again and again, and lose the registry at that moment."""
    timeout = chance.choice((1.5, 3.0))
    return replace(
        plan,
        faults=_INTERREGNUM._replace(lengths=(timeout * 0.6, timeout * 0.8)).draw(chance, plan),
        session_timeout=timeout,
        registry_delay=chance.choice((_SLOW_REGISTRY, (0.0002, 0.001))),
    )


_RESTARTS: Final = _Trouble(
    {"registry expire": 5, "slow registry": 6, "kill": 4, "stop": 2},
    whom={"": 6, "leader": 2, "controller": 1},
    pauses=(0.2, 1.0, 2.0),
    lengths=(0.1, 1.0, 3.0),
)


def restarts(chance: random.Random, plan: Plan) -> Plan:
    """Brokers lose their sessions or are started anew, and hear of it later than others do."""
    return replace(
        plan,
        faults=_RESTARTS.draw(chance, plan),
        session_timeout=chance.choice((1.5, 3.0)),
        registry_delay=chance.choice((_SLOW_REGISTRY, (0.0002, 0.001))),
    )


_OUTAGES: Final = _Trouble(
    {"power": 5, "next leader": 4, "registry expire": 1},
    whom={"": 3, "leader": 2},
    pauses=(0.5, 1.0),
    lengths=(0.1, 0.5),
)


def outages(chance: random.Random, plan: Plan) -> Plan:
    """Machines lose power, one after the other, and leaders change in between."""
    return replace(
        plan,
        faults=_OUTAGES.draw(chance, plan),
        session_timeout=1.5,
        settings=plan.settings | {"replica.lag.time.max.ms": "2000"},
    )


_HANDOVERS: Final = _Trouble(
    {"next leader": 10, "one way": 6, "slow link": 1, "pause": 1},
    whom={"led": 5, "left": 5, "leader": 6, "": 3},
    pauses=(0.1, 0.5, 1.2),
    lengths=(0.3, 1.0, 2.0),
)


def handovers(chance: random.Random, plan: Plan) -> Plan:
    """Leaders hand over when they have just begun, or when a follower has just fallen out of sync. Nobody is dead."""
    network = chance.choice(((_FAST, 400), ((0.005, 0.05), 500), ((0.05, 0.3), 1600)))
    return _among_three(chance, plan, _HANDOVERS, network)


def _among_three(
    chance: random.Random, plan: Plan, trouble: _Trouble, network: tuple[tuple[float, float], int]
) -> Plan:
    """Three brokers that share a partition, much to write, and a registry that is quicker than they are."""
    delay, lag_ms = network
    plan = replace(
        plan,
        brokers=3,
        clock_rates=(1.0,) * 3,
        topics=(("t0", 1),),
        deletable=(),
        unclean=(),
        faults=trouble.draw(chance, plan, 3),
        settings=plan.settings
        | {
            "replica.lag.time.max.ms": str(lag_ms),
            "replica.fetch.wait.max.ms": str(lag_ms // 2),
            "offsets.topic.num.partitions": "1",
            "transaction.state.log.num.partitions": "1",
        },
        delay=delay,
        registry_delay=_FAST,
        topic_settings=plan.topic_settings | {"min.insync.replicas": "1"},
    )
    plan = _with_clients(plan, lambda each: None if each.kind == "admin" else _set(each, topics=["t0"]))
    return _busy(plan, (0.01, 0.15))


_MIGRATIONS: Final = (
    _Trouble(
        {"no controller": 6, "registry expire": 2, "kill": 1},
        whom={"moving": 6, "controller": 1},
        pauses=(0.5, 2.0),
        lengths=(0.5,),
    ),
    _Trouble({"stuck connections": 1}, whom={"moved": 3, "moving": 1}, pauses=(0.3, 1.0), lengths=(1.5, 2.5)),
    _Trouble({"late orders": 1}, whom={"moving": 2, "moved": 1, "": 1}, pauses=(0.3, 1.0, 2.0), lengths=(0.5, 1.5)),
    _Trouble({"slow link": 1, "pause": 1}, whom={"moving": 1, "": 1}, pauses=(0.5, 2.0), lengths=(0.3, 1.0)),
)


def migrations(chance: random.Random, plan: Plan) -> Plan:
    """Topics move, once each and some of them there and back, or are deleted on their way; one thing goes wrong."""
    plan = replace(
        plan,
        brokers=4,
        clock_rates=(1.0,) * 4,
        topics=(("t0", 1),),
        unclean=(),
        faults=chance.choice(_MIGRATIONS).draw(chance, plan, 4),
        settings=plan.settings | {"request.timeout.ms": "700", "replica.lag.time.max.ms": "2000"},
        session_timeout=1.5,
        delay=chance.choice(_IN_TIME),
        registry_delay=_FAST,
    )
    plan = _with_clients(
        plan, lambda each: _set(each, topics=["t0"]) if each.name in ("idempotent", "reader") else None
    )
    may = chance.choice((["reassign"], ["there and back"], ["reassign", "there and back", "move and delete"]))
    return _admin(_busy(plan, (0.2, 0.5)), may, chance.choice(((0.05, 0.3), (0.2, 0.6))), _MANY, once=True)


def succession(chance: random.Random, plan: Plan) -> Plan:
    """Now and then a controller is lost, and whoever comes next does not hear the registry for a while."""
    timeout = chance.choice((1.5, 3.0))
    faults = []
    at = _FIRST
    for _ in range(chance.choice((1, 2, 3))):
        at += chance.uniform(0.5, 3.0)
        unheard = Fault(
            round(at, 3),
            "registry unheard",
            seconds=round(timeout * chance.uniform(0.9, 2.0), 3),
            other=chance.randint(0, 6),
            whom="elected",
        )
        lost = Fault(
            round(at + 0.001, 3),
            chance.choice(("kill", "registry expire")),
            seconds=round(chance.uniform(1.0, 6.0), 3),
            whom="controller",
        )
        faults += [unheard, lost]
    return replace(
        plan,
        faults=tuple(faults),
        session_timeout=timeout,
        registry_delay=chance.choice((_SLOW_REGISTRY, (0.01, 0.05))),
    )


def hearsay(chance: random.Random, plan: Plan) -> Plan:
    """What the registry says of a broker reaches that broker later than what others make of it."""
    faults = []
    at = _FIRST
    for _ in range(chance.choice((1, 2, 4))):
        at += chance.uniform(0.3, 3.0)
        soon = at + 0.1 * chance.random()
        one = chance.randint(1, plan.brokers)
        length = round(chance.uniform(1.0, 3.0), 3)
        what = chance.choice(("a new life", "a deposed controller", "orders for a former life"))
        if what == "a new life":
            faults.append(Fault(round(at, 3), "slow registry", one, length))
            faults.append(Fault(round(soon, 3), chance.choice(("registry expire", "kill")), one, 0.1))
        elif what == "a deposed controller":
            faults.append(Fault(round(at, 3), "slow registry", seconds=length, whom="controller"))
            faults.append(Fault(round(soon, 3), "no controller", one))
        else:
            faults.append(Fault(round(at, 3), "stale orders", one, length, whom="created"))
    plan = replace(
        plan,
        faults=tuple(faults),
        session_timeout=chance.choice((1.5, 3.0)),
        registry_delay=chance.choice((_SLOW_REGISTRY, _FAST)),
    )
    may = ["create", "delete", "create and delete", "create and delete", "reassign"]
    return _admin(plan, may, chance.choice(((0.05, 0.3), (0.2, 1.0), (3.0, 6.0))), _MANY)


_AFTERTHOUGHTS: Final = _Trouble(
    {"next leader": 8, "one way": 6, "stuck connections": 6},
    whom={"joined": 4, "left": 4, "led": 2, "leader": 6, "": 2},
    pauses=(0.1, 0.4, 0.8),
    lengths=(0.5, 1.0, 2.0),
)


def afterthoughts(chance: random.Random, plan: Plan) -> Plan:
    """Followers fall out of sync and come back, leaders take turns, and what was answered to them comes late."""
    plan = _among_three(chance, plan, _AFTERTHOUGHTS, chance.choice(((_FAST, 400), ((0.005, 0.05), 500))))
    late = []
    at = _FIRST
    while at < plan.seconds - _QUIET_AT_THE_END:
        late.append(Fault(round(at, 3), "late answer", 1, round(chance.uniform(1.5, 4.0), 3), 1, "left"))
        at += chance.uniform(1.0, 4.0)
    return replace(plan, faults=tuple(sorted((*plan.faults, *late), key=lambda fault: fault.at)))


_SHORTAGES: Final = _Trouble(
    {"disk full": 12, "disk slow": 2, "kill": 2, "registry expire": 2, "no controller": 2, "registry cut": 1},
    whom={"leader": 5, "led": 3, "": 4, "controller": 2},
    pauses=(0.3, 1.0, 3.0),
    lengths=(0.2, 1.0, 3.0),
)


def shortages(chance: random.Random, plan: Plan) -> Plan:
    """Disks have no room, then have some again, mostly those of leaders; the controller may not hear of it."""
    return replace(_busy(plan, (0.05, 0.3)), faults=_SHORTAGES.draw(chance, plan))


WEATHERS: Final[dict[str, Weather]] = {
    each.__name__: each
    for each in (
        *(storm, carousel, solitude, moves, latecomers, echoes, closest, interregnum, restarts, outages),
        *(handovers, migrations, succession, hearsay, afterthoughts, shortages),
    )
}
