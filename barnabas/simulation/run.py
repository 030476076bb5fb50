"""One run: a cluster, clients and faults for a while, then peace. Everything that was promised must be there then."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from barnabas.simulation.checker import check
from barnabas.simulation.clients.admin import Admin
from barnabas.simulation.clients.classic_member import ClassicMember
from barnabas.simulation.clients.client import Client, GivenUp, Lost, Refused
from barnabas.simulation.clients.consumer_member import ConsumerMember
from barnabas.simulation.clients.producer import Producer, TransactionalProducer
from barnabas.simulation.clients.reader import Reader, end_offsets
from barnabas.simulation.determinism import leaving_nothing
from barnabas.simulation.faults import Faults
from barnabas.simulation.history import History, Key
from barnabas.simulation.invariants import Invariants, TreeInvariants
from barnabas.simulation.loop import Deadlock, Livelock
from barnabas.simulation.machine import NETWORK
from barnabas.simulation.plan import ClientPlan, Plan
from barnabas.simulation.registry import HOST
from barnabas.simulation.trace import Trace
from barnabas.simulation.views import BatchView, batches_of, replicas_of
from barnabas.simulation.world import Finding, World

# How long things may take when nothing disturbs them.
_TO_START: Final = 60.0
_TO_HEAL: Final = 90.0
_TO_STOP: Final = 120.0
_TO_READ: Final = 120.0
_TO_BEGIN_ANEW: Final = 60.0
_TO_SEE: Final = 12.0
_TO_SEE_IN_A_GROUP: Final = 60.0  # a session and a rebalance may have to time out first
_TO_END: Final = 60.0  # for transactions whose producers are gone

_CLIENTS: Final[dict[str, type[Client]]] = {
    "producer": Producer,
    "transactional": TransactionalProducer,
    "consumer": ClassicMember,
    "consumer protocol": ConsumerMember,
    "reader": Reader,
    "admin": Admin,
}


@dataclass(slots=True)
class Result:
    plan: Plan
    findings: list[Finding]
    digest: str
    simulated_seconds: float
    seconds: float
    events: int
    trace: Trace
    history: History
    beliefs: list[str] = field(default_factory=list)  # what each broker believed in the end

    @property
    def promise(self) -> str:
        """The promise that was broken first, or nothing."""
        return self.findings[0].promise if self.findings else ""


class Run:
    def __init__(self, plan: Plan, world: World) -> None:
        self.plan = plan
        self.world = world
        self.history = History()
        self.invariants = Invariants(world)
        self.history.unclean = self.invariants.unclean = dict.fromkeys(plan.unclean)
        self.history.isrs = self.invariants.isrs
        self.clients: list[Client] = []
        self.client_hosts: list[str] = []
        world.fabric.delay_among[NETWORK] = plan.delay
        world.registry.session_timeout = plan.session_timeout
        self._tree = TreeInvariants(world)
        world.on_tree_change = self._tree.changed
        self._faults = Faults(self)
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def survives_loss_of_power(self) -> bool:
        """A single broker does only if it syncs what it acknowledges."""
        return self.plan.brokers > 1 or self.plan.settings.get("log.flush.interval.messages") == "1"

    def go(self) -> None:
        try:
            for step in (
                self._start,
                self._disturb,
                self._heal,
                self._end_writers,
                self._begin_anew,
                self._end_groups,
                self._end_readers,
                self._read_everything,
                self._compare,
            ):
                step()
                if self.world.findings:
                    return
            for anomaly in check(self.history):
                self.world.found(anomaly.kind, anomaly.what)
        except Deadlock as error:
            self.world.found("something always happens", str(error))
        except Livelock as error:
            self.world.found("nothing runs in circles", str(error))

    # --- the steps ---

    def _start(self) -> None:
        plan, world = self.plan, self.world
        settings = {
            "default.replication.factor": str(plan.replication),
            "offsets.topic.replication.factor": str(plan.replication),
            "transaction.state.log.replication.factor": str(plan.replication),
            "transaction.state.log.min.isr": str(min(2, plan.replication)),
            "min.insync.replicas": str(min(2, plan.replication)),
            **plan.settings,
        }
        for number in range(plan.brokers):
            rack = {"broker.rack": f"rack{number % plan.racks}"} if plan.racks else {}
            machine = world.add_machine({**settings, **rack})
            machine.clock_rate = plan.clock_rates[number] if plan.clock_rates else 1.0
            for link in world.fabric.link(machine.host, HOST), world.fabric.link(HOST, machine.host):
                link.delay, link.jitter = plan.registry_delay
            machine.start()
        machines = world.machines.values()
        if not world.run_until(lambda: all(machine.is_serving for machine in machines), _TO_START):
            if not world.findings:
                world.found("brokers start", "they do not")
            return
        admin = Admin(world, "founder", self.history, replication=plan.replication)
        for name, count in (*plan.topics, *((name, 1) for name in plan.deletable)):
            if not self._finish(admin, f"creates {name}", self._create(admin, name, count), _TO_START):
                return
        self._faults.schedule(plan.faults)
        for each in plan.clients:
            client = self._make(each)
            self.clients.append(client)
            self.client_hosts.append(client.host)
            self._tasks.append(client.start())

    async def _create(self, admin: Admin, name: str, count: int) -> None:
        while True:
            try:
                settings = dict(self.plan.topic_settings)
                if name in self.plan.unclean:
                    settings["unclean.leader.election.enable"] = "true"
                await admin.create(name, count, **{key.replace(".", "_"): value for key, value in settings.items()})
                return
            except (Lost, Refused, GivenUp) as error:
                admin.note(f"could not create {name}: {error}")
                await asyncio.sleep(0.5)

    def _make(self, plan: ClientPlan) -> Client:
        settings: dict[str, Any] = {
            key: tuple(value) if key == "pause" else value for key, value in plan.settings.items()
        }
        if plan.kind == "admin":
            return Admin(self.world, plan.name, self.history, **settings)
        return _CLIENTS[plan.kind](self.world, plan.name, self.history, settings.pop("topics"), **settings)  # type: ignore[call-arg]

    def _disturb(self) -> None:
        self.world.run(max(self.plan.seconds - self.world.now, 0))

    def _heal(self) -> None:
        self.world.happened("world", "faults are over", "fault")
        self._faults.stop()
        if not self.world.run_until(self._faults.is_whole, _TO_HEAL, 0.25) and not self.world.findings:
            self.world.found("the cluster heals by itself", f"after {_TO_HEAL:.0f} s {self._faults.what_is_missing()}")

    def _end_writers(self) -> None:
        self._end([each for each in self.clients if type(each) not in (Reader, ConsumerMember)])

    def _begin_anew(self) -> None:
        """Whoever comes next with a transactional id can begin: what was left open is ended."""
        successor = TransactionalProducer(self.world, "successor", History(), [])
        for name in dict.fromkeys(c.transactional_id for c in self.clients if isinstance(c, TransactionalProducer)):
            if not self._finish(successor, f"succeeds {name}", successor.succeed(name), _TO_BEGIN_ANEW):
                return

    def _end_groups(self) -> None:
        """Each partition has a member that reads it to its end, without anybody who does more than send heartbeats."""
        members = [each for each in self.clients if isinstance(each, ConsumerMember)]
        last = Reader(self.world, "group counter", History(), [], committed_only=True)
        for group in dict.fromkeys(each.group for each in members):
            own = [each for each in members if each.group == group]
            for name in own[0].names:
                if name in self.plan.unclean:
                    continue
                if not self._finish(last, f"counts {name}", self._group_sees_all(own, last, name), _TO_READ):
                    return
        self._end(members)

    async def _group_sees_all(self, members: Sequence[ConsumerMember], last: Reader, name: str) -> None:
        ends = await self._settled_ends(last, name) or {}
        patience = last.loop.time() + _TO_SEE_IN_A_GROUP
        while ends and last.loop.time() < patience:
            ends = {index: end for index, end in ends.items() if not any(m.reads(name, index, end) for m in members)}
            await asyncio.sleep(0.1)
        for index, end in ends.items():
            self.world.found(
                "groups read what is committed",
                f"{name}-{index} ends at {end}, and after {_TO_SEE_IN_A_GROUP} s of peace no member of"
                f" {members[0].group} has come there",
            )

    def _end_readers(self) -> None:
        """Nobody writes any more: readers see everything before long, and end."""
        readers = [each for each in self.clients if type(each) is Reader]
        last = Reader(self.world, "counter", History(), [], committed_only=True)
        for reader in readers:
            for name in reader.names:
                if not self._finish(last, f"counts {name}", self._see_all(reader, last, name), _TO_READ):
                    return
        self._end(readers)

    async def _see_all(self, reader: Reader, last: Reader, name: str) -> None:
        ends = await self._settled_ends(last, name)
        patience = last.loop.time() + _TO_SEE
        while ends is not None and last.loop.time() < patience:
            if all(reader.has_seen(name, index, end) for index, end in ends.items()):
                return
            await asyncio.sleep(0.1)
        for index, end in () if ends is None else ends.items():
            if not reader.has_seen(name, index, end):
                position = reader.positions[name, index].offset
                self.world.found(
                    "readers see what is committed",
                    f"{reader.name} is at {position} of {name}-{index} after {_TO_SEE} s of peace, which ends at {end}",
                )

    def _end(self, clients: Sequence[Client]) -> None:
        for client in clients:
            client.stopping = True
        tasks = [task for client, task in zip(self.clients, self._tasks, strict=True) if client in clients]
        if not self.world.run_until(lambda: all(task.done() for task in tasks), _TO_STOP):
            if not self.world.findings:
                hanging = [c.name for c, task in zip(clients, tasks, strict=True) if not task.done()]
                self.world.found("every request is answered", f"{', '.join(hanging)} cannot end")
            return
        for client, task in zip(clients, tasks, strict=True):
            error = None if task.cancelled() else task.exception()
            if error is not None:
                self.world.found("clients understand what they are told", f"{client.name}: {error!r}")

    def _read_everything(self) -> None:
        reader = Reader(self.world, "last reader", History(), [], committed_only=True)
        for name in (*(name for name, _ in self.plan.topics), *self.plan.deletable):
            if not self._finish(reader, f"reads {name}", self._read_topic(reader, name), _TO_READ):
                return

    async def _read_topic(self, reader: Reader, name: str) -> None:
        await reader.refresh([name])
        if name in self.plan.deletable and name not in reader.topics:
            return
        await reader.topic(name)
        ends = await self._settled_ends(reader, name)
        if ends is None:
            return
        topic = reader.topics[name]
        reader.positions = {}
        reader.history = History()
        for index in topic.partitions:
            reader.place(name, index, 0)
        while any(reader.positions[name, index].offset < end for index, end in ends.items()):
            await reader.poll()
        found: dict[Key, list[tuple[int, str]]] = {topic.key(index): [] for index in topic.partitions}
        for poll in reader.history.polls:
            found[poll.key] += poll.records
        self.history.final.update({key: tuple(records) for key, records in found.items()})

    async def _settled_ends(self, reader: Reader, name: str) -> dict[int, int] | None:
        """Where partitions end, once no transaction is open. None if the topic's deletion was under way.

        An unclean election may lose the marker that ended a transaction, which then stays open forever, as with Kafka:
        such a topic counts up to there.
        """
        patience = reader.loop.time() + _TO_END
        while True:
            ends = await end_offsets(reader, name, committed_only=False)
            stable = await end_offsets(reader, name, committed_only=True)
            if ends is not None and ends == stable:
                return ends
            if stable is not None and name in self.plan.unclean and reader.loop.time() > patience:
                return stable
            await asyncio.sleep(1)
            await reader.refresh([name])
            if name in self.plan.deletable and name not in reader.topics:
                return None

    def _compare(self) -> None:
        """All replicas of a partition end up the same."""
        if not self.world.run_until(lambda: self._difference() is None, _TO_HEAL, 0.5) and not self.world.findings:
            self.world.found("replicas end up the same", self._difference() or "")

    def _difference(self) -> str | None:
        logs: dict[tuple[bytes, int], tuple[str, tuple[int, list[BatchView]]]] = {}
        for machine in self.world.machines.values():
            if machine.broker is None:
                return f"{machine.name} is not there"
            for view, log in replicas_of(machine.broker):
                content = (view.end_offset, [] if log.config.compact else batches_of(log, 0, view.end_offset))
                name, known = logs.setdefault((view.topic_id, view.partition), (machine.name, content))
                if known != content:
                    return (
                        f"{view.topic}-{view.partition} ends at {known[0]} on {name} and at {view.end_offset} on"
                        f" {machine.name}"
                    )
        return None

    # --- parts of them ---

    def _finish(self, client: Client, what: str, work: Coroutine[Any, Any, None], within: float) -> bool:
        task = client.loop.create_task(work)
        if not self.world.run_until(task.done, within):
            if not self.world.findings:
                self.world.found("every request is answered", f"{client.name} {what}, and waits forever")
            return False
        try:
            task.result()
        except (GivenUp, Lost, Refused) as error:
            self.world.found("every request is answered", f"{client.name} {what}, and cannot: {error}")
            return False
        return True

    def beliefs(self) -> list[str]:
        """What each broker believes of each partition, and what the tree says."""
        lines = []
        for machine in self.world.machines.values():
            state = "serves" if machine.is_serving else "runs" if machine.is_running else "is down"
            lines.append(f"{machine.name} {state}")
            if machine.broker is None:
                continue
            for view, _ in sorted(replicas_of(machine.broker), key=lambda each: each[0][:3:2]):
                role = "leads  " if view.leads else "follows"
                lines.append(
                    f"    {view.topic}-{view.partition:<3} {role} in epoch {view.leader_epoch:<3}"
                    f" start {view.start_offset:<6} high watermark {view.high_watermark:<6} end {view.end_offset}"
                )
        for registry in self.world.registries():
            for path, node in registry.tree.nodes():
                if path.endswith("/state") or path in ("/controller", "/controller_epoch"):
                    lines.append(f"tree: {path} = {node.data.decode()}")
        return lines


def run(plan: Plan) -> Result:
    """Run a plan to its end, or to the first broken promise."""
    with leaving_nothing():
        return _run(plan)


def _run(plan: Plan) -> Result:
    began = time.process_time()
    with World(plan.seed) as world:
        one = Run(plan, world)
        one.go()
        beliefs = one.beliefs() if world.findings else []
        return Result(
            plan,
            world.findings,
            world.trace.digest,
            world.now,
            time.process_time() - began,
            world.scheduler.events,
            world.trace,
            one.history,
            beliefs,
        )
