"""What must hold after every step, looked at from outside and above: nobody in the cluster knows all of this.

For every partition, what is committed is written down as soon as a leader says so. From then on it can only grow, every
replica that counts it as committed has the same bytes, and every later leader has all of it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from barnabas.broker.controller.znodes import read_state, read_topic, state_path, topic_path
from barnabas.broker.registry.registry import Change, Node
from barnabas.simulation.history import Key
from barnabas.simulation.loop import ProcessLoop
from barnabas.simulation.registry import SimulatedSession
from barnabas.simulation.trace import Sample
from barnabas.simulation.views import (
    BatchView,
    ReplicaView,
    Seen,
    batches_of,
    changed_replicas,
    replicas_of,
    waits_for_nobody,
    waits_in_vain,
)
from barnabas.storage.log import Log

if TYPE_CHECKING:
    from barnabas.simulation.machine import Machine
    from barnabas.simulation.world import World

_Partition = tuple[bytes, int]


class _Committed:
    """What is committed in a partition."""

    def __init__(self) -> None:
        self.batches: dict[int, BatchView] = {}  # by base offset
        self.end_offset = 0
        self.leaders: dict[int, str] = {}  # by leader epoch


class _Known:
    """What was last seen of a replica."""

    __slots__ = ("checked", "log", "view")

    def __init__(self, log: Log) -> None:
        self.log = log
        self.view: ReplicaView | None = None
        self.checked = 0  # up to here it agrees with what is committed


class Invariants:
    """Looks at brokers that have done something, when an instant is over."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._topic_nodes: dict[str, tuple[Node, bytes]] = {}
        self._committed: dict[_Partition, _Committed] = {}
        self._replicas: dict[tuple[int, _Partition], _Known] = {}
        self._epochs: dict[tuple[int, _Partition], int] = {}
        self._seen: Seen = {}
        self._next_look: dict[int, float] = {}
        self._last_look: dict[int, float] = {}
        self._stuck: dict[tuple[int, str], tuple[float, object]] = {}
        self._in_vain: dict[tuple[int, str], object] = {}  # fetches that waited although there was something
        # Topics whose leaders may be elected although they are not in sync: nothing is promised of them.
        self.unclean: dict[str, None] = {}
        self.isrs: dict[tuple[int, Key], list[tuple[float, tuple[int, ...]]]] = {}  # that leaders believed in
        world.scheduler.on_instant = self._look

    def _look(self, active: dict[ProcessLoop, None]) -> None:
        for machine in self._world.machines.values():
            if machine.loop in active:
                self._look_at(machine)

    def _look_at(self, machine: Machine) -> None:
        broker = machine.broker
        assert broker is not None
        now = self._world.scheduler.now
        if now >= self._next_look.get(machine.broker_id, 0.0):
            self._next_look[machine.broker_id] = now + 0.5
            self._look_for_stuck(machine)
        for view, log in changed_replicas(broker, self._seen):
            partition = (view.topic_id, view.partition)
            known = self._replicas.get((machine.broker_id, partition))
            if known is None or known.log is not log:  # the process has been started anew
                known = self._replicas[machine.broker_id, partition] = _Known(log)
                if log.config.compact:
                    known.checked = view.high_watermark  # compaction changes what has been compared already
            before = known.view
            if before == view:
                continue
            known.view = view
            if view.isr is not None and (before is None or before.isr != view.isr):
                key = f"{view.topic}#{view.topic_id.hex()[:6]}", view.partition
                self.isrs.setdefault((machine.broker_id, key), []).append((now, view.isr))
            self._world.trace.sample(
                Sample(
                    now,
                    machine.name,
                    f"{view.topic}-{view.partition}",
                    view.leads,
                    view.leader_epoch,
                    view.high_watermark,
                    view.end_offset,
                )
            )
            self._check(machine, partition, before, view, known)

    def _look_for_stuck(self, machine: Machine) -> None:
        """A follower that has left the ISR may count a little longer, for as long as it may lag."""
        broker, broker_id, now = machine.broker, machine.broker_id, self._world.now
        if broker is None or getattr(broker, "replicas", None) is None:
            return
        gone_by = min(now - self._last_look.get(broker_id, now), 1.5)  # while it stood still it could do nothing
        self._last_look[broker_id] = now
        patience = broker.replicas.max_lag_ms / 1000 / min(machine.clock_rate, 1.0) + 3.0
        waiting: dict[tuple[int, str], object] = {(broker_id, name): broker for name in waits_for_nobody(broker)}
        vain = dict(waits_in_vain(broker))
        for name, fetch in vain.items():
            if self._in_vain.get((broker_id, name)) is fetch:
                self._broken("nobody waits for what is there", f"a fetch waits at {name} on {machine.name}")
        self._in_vain = {key: each for key, each in self._in_vain.items() if key[0] != broker_id}
        self._in_vain |= {(broker_id, name): fetch for name, fetch in vain.items()}
        for key in [key for key in self._stuck if key[0] == broker_id and self._stuck[key][1] is not waiting.get(key)]:
            del self._stuck[key]
        for key in waiting:
            waited = self._stuck[key][0] + gone_by if key in self._stuck else 0.0
            self._stuck[key] = (waited, broker)
            if waited > patience:
                self._broken(
                    "what all in-sync replicas have is committed",
                    f"{key[1]}: {machine.name} leads it and is alone in sync, and something has waited {waited:.1f} s",
                )

    def _check(
        self, machine: Machine, partition: _Partition, before: ReplicaView | None, view: ReplicaView, known: _Known
    ) -> None:
        name = f"{view.topic}-{view.partition} on {machine.name}"
        committed = self._committed.setdefault(partition, _Committed())
        if view.high_watermark > view.end_offset:
            self._broken("the high watermark is in the log", f"{name}: {view.high_watermark} > {view.end_offset}")
        newest = self._epochs.get((machine.broker_id, partition), -1)
        if view.leader_epoch < newest:
            self._broken("epochs never go back", f"{name}: from {newest} to {view.leader_epoch}")
        self._epochs[machine.broker_id, partition] = max(newest, view.leader_epoch)
        if before is not None and view.truncations != before.truncations:
            if view.end_offset < min(before.high_watermark, committed.end_offset) and view.topic not in self.unclean:
                self._broken(
                    "what is committed is never cut",
                    f"{name} was cut to {view.end_offset}, below its high watermark {before.high_watermark}",
                )
            known.checked = min(known.checked, view.end_offset)
        if view.leads:
            self._check_leader(machine, committed, before, view, known, name)
        if view.topic not in self.unclean:
            self._compare(committed, view, known, name)

    def _check_leader(
        self,
        machine: Machine,
        committed: _Committed,
        before: ReplicaView | None,
        view: ReplicaView,
        known: _Known,
        name: str,
    ) -> None:
        leader = committed.leaders.setdefault(view.leader_epoch, machine.name)
        if leader != machine.name:
            self._broken("one leader in an epoch", f"{name} and {leader} lead in epoch {view.leader_epoch}")
        is_new = before is None or not before.leads or before.leader_epoch != view.leader_epoch
        if is_new:
            self._world.happened(
                machine.name,
                f"leads {view.topic}-{view.partition} in epoch {view.leader_epoch}, from {view.end_offset} on"
                f" (high watermark {view.high_watermark})",
                "role",
            )
            is_newest = view.leader_epoch == max(committed.leaders)  # its order may come when the next one leads
            if is_newest and view.end_offset < committed.end_offset and view.topic not in self.unclean:
                self._broken(
                    "a leader has everything that is committed",
                    f"{name} leads in epoch {view.leader_epoch} and ends at {view.end_offset};"
                    f" committed is everything below {committed.end_offset}",
                )
        self._check_newcomers(committed, view, name)
        self._check_isr(machine, view, name)
        if not is_new and before is not None and view.high_watermark < before.high_watermark:
            self._broken(
                "a high watermark never goes back", f"{name}: {before.high_watermark} to {view.high_watermark}"
            )

    def _check_newcomers(self, committed: _Committed, view: ReplicaView, name: str) -> None:
        """Whoever is to count as in sync has everything that is committed."""
        if view.asked is None or view.topic in self.unclean or view.leader_epoch != max(committed.leaders):
            return
        for broker_id in view.asked.isr:
            known = self._replicas.get((broker_id, (view.topic_id, view.partition)))
            if broker_id in (view.isr or ()) or known is None or known.view is None:
                continue
            if known.view.end_offset < committed.end_offset:
                self._broken(
                    "whoever is in sync has everything that is committed",
                    f"{name} wants broker {broker_id} in its ISR, which ends at {known.view.end_offset};"
                    f" committed is everything below {committed.end_offset}",
                )

    def _check_isr(self, machine: Machine, view: ReplicaView, name: str) -> None:
        """Whoever may be elected next counts: a leader may wait for more replicas than are in sync, never for fewer."""
        tree = self._world.registry.tree
        topic, state = tree.find(topic_path(view.topic)), tree.find(state_path(view.topic, view.partition))
        if topic is None or state is None or view.topic in self.unclean:
            return
        if self._topic_id(view.topic, topic) != view.topic_id:
            return  # it has been deleted, and there is another one of that name
        known = read_state(view.topic, view.partition, state)
        if (known.leader_id, known.leader_epoch) != (machine.broker_id, view.leader_epoch):
            return  # it is deposed, or will be told
        counted = {*(view.isr or ()), *(view.asked.isr if view.asked is not None else ())}
        if not counted.issuperset(known.isr_nodes):
            self._broken(
                "a leader waits for everybody who is in sync",
                f"{name} counts {sorted(counted)}, and in sync are {list(known.isr_nodes)}",
            )

    def _topic_id(self, name: str, node: Node) -> bytes:
        """Which topic a node of the tree describes. It is asked for all the time and hardly ever changes."""
        known = self._topic_nodes.get(name)
        if known is None or known[0] is not node:
            known = self._topic_nodes[name] = (node, read_topic(name, node).topic_id)
        return known[1]

    def _compare(self, committed: _Committed, view: ReplicaView, known: _Known, name: str) -> None:
        """Compare what has become committed here with what is committed; a leader is the one who says so first."""
        start = max(known.checked, view.start_offset)
        end = view.high_watermark
        if view.leads and view.leader_epoch == max(committed.leaders):  # one that is deposed may have something else
            end = max(end, min(view.end_offset, committed.end_offset))
        if start >= end:
            return
        for batch in batches_of(known.log, start, end):
            if known.log.leader_epochs.epoch_of(batch.base_offset) != batch.leader_epoch:
                self._broken(
                    "a log knows its leader epochs",
                    f"{name} has {batch}, and counts it to epoch {known.log.leader_epochs.epoch_of(batch.base_offset)}",
                )
                break
            there = committed.batches.get(batch.base_offset)
            if there is None and batch.base_offset >= committed.end_offset:
                committed.batches[batch.base_offset] = batch
                committed.end_offset = batch.last_offset + 1
            elif there != batch:
                self._broken(
                    "below the high watermark all logs agree",
                    f"{name} has {batch}, committed is {there or self._around(committed, batch.base_offset)}",
                )
                break
        known.checked = max(known.checked, end)

    @staticmethod
    def _around(committed: _Committed, offset: int) -> BatchView | None:
        return next(
            (each for each in committed.batches.values() if each.base_offset <= offset <= each.last_offset), None
        )

    def _broken(self, promise: str, what: str) -> None:
        self._world.found(promise, what)

    def has_everything(self, machine: Machine) -> bool:
        """Whether each replica of a broker has all that is committed."""
        if machine.broker is None:
            return False
        for view, _ in replicas_of(machine.broker):
            committed = self._committed.get((view.topic_id, view.partition))
            if committed is not None and view.end_offset < committed.end_offset:
                return False
        return True

    def forget_disk(self, broker_id: int) -> None:
        """The disk has lost something: what this broker knew is no longer known."""
        for key in [key for key in self._replicas if key[0] == broker_id]:
            del self._replicas[key]
        for key in [key for key in self._epochs if key[0] == broker_id]:
            del self._epochs[key]


class TreeInvariants:
    """What must hold of the tree of cluster facts: only the controller decides, and epochs rise."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._controller_epoch = 0
        self._elected = -1  # the session of whoever was elected last; as long as nobody else is, it decides
        self._leader_epochs: dict[str, int] = {}

    def changed(self, zxid: int, session: SimulatedSession | None, changes: Sequence[Change]) -> None:
        for path, node in changes:
            if path == "/controller_epoch" and node is not None:
                epoch = int(node.data)
                if epoch < self._controller_epoch:
                    self._broken("epochs never go back", f"controller epoch {self._controller_epoch} to {epoch}")
                self._controller_epoch = epoch
            elif path == "/controller" and node is not None:
                self._elected = session.number if session is not None else -1
            elif path.startswith("/brokers/topics/") and path.endswith("/state"):
                self._state_changed(path, node.data if node is not None else None, session)

    def _state_changed(self, path: str, data: bytes | None, session: SimulatedSession | None) -> None:
        name = "-".join(path.split("/")[3::2][:2])
        if data is None:
            self._leader_epochs.pop(path, None)
            return
        state = json.loads(data)
        before = self._leader_epochs.get(path, -1)
        if state["leader_epoch"] < before:
            self._broken(
                "epochs never go back", f"{name}: leader epoch {before} to {state['leader_epoch']} in the tree"
            )
        self._leader_epochs[path] = state["leader_epoch"]
        if state["controller_epoch"] > self._controller_epoch:
            self._broken("a deposed controller changes nothing", f"{name}: {state} in epoch {self._controller_epoch}")
        if session is not None and session.number != self._elected:
            self._broken("a deposed controller changes nothing", f"{session.name} has written {name}: {state}")
        if not state["isr"]:
            self._broken("an ISR is never empty", f"{name}: {state}")
        elif state["leader"] != -1 and state["leader"] not in state["isr"]:
            self._broken("a leader is in sync", f"{name}: {state}")

    def _broken(self, promise: str, what: str) -> None:
        self._world.found(promise, what)
