"""What a run consists of, drawn from its seed: brokers, topics, clients, faults. To shrink a run, change its plan."""

from __future__ import annotations

import json
import random
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

_FAST: Final = (0.0002, 0.001)


@dataclass(frozen=True, slots=True)
class Fault:
    at: float
    kind: str
    broker: int = 0
    seconds: float = 0.0
    other: int = 0  # a second broker, or a number that the fault needs
    # Instead of the broker: "controller", or "leader" of some partition, whoever that is then. For some the fault
    # waits: "elected" is whoever is elected as the controller next, "joined" whoever is the next to join an ISR. With
    # "led" and "left" it begins when a partition has a new leader, or a replica has left the ISR, and hits another
    # replica in sync; with "moving" and "created" when a partition begins to move, or a topic is created; with "moved"
    # when a move has ended, and hits the controller.
    whom: str = ""

    def __str__(self) -> str:
        other = f", {self.other}" if self.other else ""
        return f"{self.at:8.3f}  {self.kind} ({self.whom or f'broker {self.broker}'}{other}) for {self.seconds:.3f} s"


@dataclass(frozen=True, slots=True)
class ClientPlan:
    kind: str
    name: str
    settings: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Plan:
    seed: int
    brokers: int
    seconds: float
    topics: tuple[tuple[str, int], ...]
    deletable: tuple[str, ...]
    clients: tuple[ClientPlan, ...]
    faults: tuple[Fault, ...]
    replication: int
    settings: dict[str, str] = field(default_factory=dict)
    topic_settings: dict[str, str] = field(default_factory=dict)
    clock_rates: tuple[float, ...] = ()
    racks: int = 0  # how many racks the brokers are in; consumers read from the closest replica then
    delay: tuple[float, float] = _FAST  # among brokers: at least, and at most so much more
    session_timeout: float = 6.0  # of the registry
    registry_delay: tuple[float, float] = _FAST  # between brokers and the registry
    unclean: tuple[str, ...] = ()  # topics whose leaders need not be in sync: of their records nothing is promised

    def without(self, *, faults: frozenset[int] = frozenset(), clients: frozenset[int] = frozenset()) -> Plan:
        return replace(
            self,
            faults=tuple(each for number, each in enumerate(self.faults) if number not in faults),
            clients=tuple(each for number, each in enumerate(self.clients) if number not in clients),
        )

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=2)

    @classmethod
    def from_json(cls, text: str) -> Plan:
        raw = json.loads(text)
        raw["faults"] = tuple(Fault(**each) for each in raw["faults"])
        raw["clients"] = tuple(ClientPlan(**each) for each in raw["clients"])
        raw["topics"] = tuple((name, count) for name, count in raw["topics"])
        raw["deletable"] = tuple(raw["deletable"])
        raw["clock_rates"] = tuple(raw["clock_rates"])
        raw["delay"], raw["registry_delay"] = tuple(raw["delay"]), tuple(raw["registry_delay"])
        raw["unclean"] = tuple(raw.get("unclean", ()))
        return cls(**raw)


# How often each fault is drawn, compared with the others.
FAULTS: Final[dict[str, int]] = {
    "kill": 8,
    "kill all": 1,
    "stop": 3,
    "power": 4,
    "wipe": 2,
    "pause": 6,
    "isolate": 5,
    "split": 4,
    "deaf": 3,
    "mute": 3,
    "one way": 3,
    "slow link": 3,
    "reset connections": 4,
    "stuck connections": 3,
    "registry cut": 4,
    "registry expire": 3,
    "registry down": 1,
    "slow registry": 2,
    "no controller": 3,
    "next leader": 4,
    "clients unheard": 2,
    "disk full": 2,
    "disk slow": 3,
    "clock": 2,
}

# These mean nothing to a single broker, or it is not made for them.
AMONG_SEVERAL: Final = frozenset(
    {
        "deaf",
        "isolate",
        "kill all",
        "mute",
        "next leader",
        "no controller",
        "one way",
        "pause",
        "registry cut",
        "registry down",
        "registry expire",
        "slow registry",
        "split",
        "stuck connections",
        "wipe",
    }
)

# Of all seeds, so many have a weather of their own.
_HAVE_WEATHER: Final = 0.3

# Seeds that are known by their number stay what they were when there were fewer weathers.
_KNOWN_SEEDS: Final = 300
_FIRST_WEATHERS: Final = 10

RACK_AWARE: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


def draw(seed: int, *, brokers: int | None = None, seconds: float = 60.0, weather: str | None = None) -> Plan:
    """With a `weather`, one kind of trouble comes again and again; without saying so, some seeds have one."""
    from barnabas.simulation.weather import WEATHERS

    plan = _draw(seed, brokers, seconds)
    chance = random.Random(f"weather {seed}")
    if weather is None and brokers is None and chance.random() < _HAVE_WEATHER:
        weather = chance.choice(list(WEATHERS)[: _FIRST_WEATHERS if seed <= _KNOWN_SEEDS else None])
    plan = plan if weather is None else WEATHERS[weather](chance, plan)
    return plan if seed <= _KNOWN_SEEDS else _with_new_protocol(plan, random.Random(f"consumer protocol {seed}"))


def _with_new_protocol(plan: Plan, chance: random.Random) -> Plan:
    """The members of some groups speak the consumer protocol (KIP-848), all of them or each as chance has it."""
    share = chance.choice((0.0, 0.0, 0.5, 1.0, 1.0))
    return replace(
        plan,
        clients=tuple(
            replace(each, kind="consumer protocol") if each.kind == "consumer" and chance.random() < share else each
            for each in plan.clients
        ),
        settings=plan.settings
        | {
            "group.consumer.min.session.timeout.ms": "1000",
            "group.consumer.session.timeout.ms": str(chance.choice((3000, 6000, 12000))),
            "group.consumer.min.heartbeat.interval.ms": "100",
            "group.consumer.heartbeat.interval.ms": str(chance.choice((300, 1000, 2000))),
            "group.consumer.assignment.interval.ms": str(chance.choice((0, 500, 1000))),
        },
    )


def _draw(seed: int, brokers: int | None, seconds: float) -> Plan:
    chance = random.Random(f"plan {seed}")
    count = brokers or chance.choice((3, 3, 3, 4, 5))
    replication = min(count, 3)
    topics = tuple((f"t{number}", chance.randint(1, 3)) for number in range(chance.randint(1, 2)))
    deletable = ("d0",) if chance.random() < 0.5 else ()
    racks = chance.choice((0, 0, 2, 3)) if count > 1 else 0
    unclean = (topics[-1][0],) if count > 1 and len(topics) > 1 and chance.random() < 0.3 else ()
    return Plan(
        seed,
        count,
        seconds,
        topics,
        deletable,
        tuple(_clients(chance, [name for name, _ in topics], deletable, replication, racks)),
        tuple(_faults(chance, count, seconds)),
        replication,
        settings=_settings(chance)
        | ({"log.flush.interval.messages": "1"} if count == 1 else {})
        | ({"replica.selector.class": RACK_AWARE} if racks else {}),
        topic_settings=_topic_settings(chance, replication),
        clock_rates=tuple(chance.choice((1.0, 1.0, 1.0, 1.001, 0.999, 1.02, 0.8, 1.25)) for _ in range(count)),
        racks=racks,
        unclean=unclean,
        delay=chance.choice((_FAST, _FAST, (0.005, 0.05), (0.05, 0.3))) if count > 1 else _FAST,
        session_timeout=chance.choice((1.5, 3.0, 6.0)),
        registry_delay=chance.choice((_FAST, _FAST, (0.02, 0.2))) if count > 1 else _FAST,
    )


def _settings(chance: random.Random) -> dict[str, str]:
    return {
        "offsets.topic.num.partitions": str(chance.choice((1, 2, 3))),
        "transaction.state.log.num.partitions": str(chance.choice((1, 2, 3))),
        "log.flush.offset.checkpoint.interval.ms": str(chance.choice((1000, 5000, 60000))),
        "replica.lag.time.max.ms": str(chance.choice((2000, 5000, 10000))),
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": "2000",
        "log.cleaner.backoff.ms": "5000",
    }


def _topic_settings(chance: random.Random, replication: int) -> dict[str, str]:
    return {
        "min.insync.replicas": str(min(chance.choice((1, 2, 2)), replication)),
        "segment.ms": str(chance.choice((1000, 5000, 20000, 604800000))),
    }


def _clients(
    chance: random.Random, topics: list[str], deletable: tuple[str, ...], replication: int, racks: int
) -> list[ClientPlan]:
    def rack() -> str:
        return f"rack{chance.randrange(racks)}" if racks and chance.random() < 0.8 else ""

    pause = list(chance.choice(((0.05, 0.3), (0.2, 1.0), (0.5, 2.0), (1.0, 4.0))))
    clients = [
        ClientPlan(
            "producer", "plain", {"topics": topics, "acks": chance.choice((1, -1)), "pause": pause, "version": 9}
        ),
        ClientPlan(
            "producer",
            "idempotent",
            {"topics": topics, "idempotent": True, "at_once": chance.choice((1, 3, 5)), "pause": pause},
        ),
        ClientPlan("transactional", "txn1", {"topics": topics, "implicit": chance.random() < 0.5, "pause": pause}),
        ClientPlan(
            "transactional", "txn2", {"topics": topics, "implicit": chance.random() < 0.5, "pause": pause, "group": "x"}
        ),
        ClientPlan("reader", "reader", {"topics": topics, "committed_only": chance.random() < 0.5, "rack": rack()}),
    ]
    for number in range(chance.randint(1, 3)):
        settings = {"topics": topics, "group": "g", "committed_only": chance.random() < 0.7, "rack": rack()}
        clients.append(ClientPlan("consumer", f"member{number}", settings))
    if deletable:
        clients.append(
            ClientPlan("producer", "elsewhere", {"topics": list(deletable), "idempotent": True, "pause": pause})
        )
    admin_pause = list(chance.choice(((0.5, 3.0), (3.0, 12.0))))
    clients.append(
        ClientPlan(
            "admin",
            "admin",
            {"topics": topics, "deletable": list(deletable), "replication": replication, "pause": admin_pause},
        )
    )
    return [each for each in clients if each.name in ("idempotent", "reader") or chance.random() < 0.8]


def _faults(chance: random.Random, brokers: int, seconds: float) -> list[Fault]:
    """Some runs are calm, some wild, and some have one kind of trouble only."""
    kinds = {kind: weight for kind, weight in FAULTS.items() if brokers > 1 or kind not in AMONG_SEVERAL}
    if chance.random() < 0.4:
        chosen = chance.sample(sorted(kinds), chance.randint(1, 3))
        kinds = {kind: kinds[kind] for kind in chosen}
    count = round(chance.choice((0, 2, 4, 6, 8, 12, 16, 24)) * min(1.0, seconds / 60 + 0.2))
    latest = max(seconds - 5.0, 4.0)
    together = chance.random() < 0.5  # one fault meets another
    at = chance.uniform(3.0, latest)
    faults = []
    for _ in range(count):
        kind = chance.choices(list(kinds), list(kinds.values()))[0]
        length = chance.choice((0.05, 0.5, 2.0, 5.0, 8.0, 15.0)) * chance.uniform(0.5, 1.5)
        if not together or at > latest or chance.random() < 0.3:
            at = chance.uniform(3.0, latest)
        faults.append(
            Fault(
                round(at, 3),
                kind,
                chance.randint(1, brokers),
                round(length, 3),
                chance.randint(1, brokers),
                chance.choices(("", "controller", "leader"), (6, 1, 3))[0],
            )
        )
        at += chance.choice((0.01, 0.3, 2.0)) * chance.random()
    return sorted(faults, key=lambda fault: fault.at)
