"""Carrying out faults, and ending them.

A loss of power may take what was acknowledged with it, if it hits the last broker that has it: like Kafka, brokers do
not sync before they acknowledge. So it happens only when everything is in sync, and nothing else is done to the cluster
until everything is in sync again.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from barnabas.broker.cluster.writes import Deposed
from barnabas.broker.registry.errors import RegistryError
from barnabas.broker.registry.tree_operations import Delete
from barnabas.protocol.topic_partition import TopicPartition
from barnabas.simulation.machine import PORT
from barnabas.simulation.registry import HOST
from barnabas.simulation.views import replicas_of

if TYPE_CHECKING:
    from barnabas.simulation.machine import Machine
    from barnabas.simulation.plan import Fault
    from barnabas.simulation.run import Run

# What does not take a broker from the others.
_HARMLESS: Final = frozenset({"slow link", "reset connections", "clock", "disk slow"})

# How often a controller is asked to let somebody lead before that is given up.
_TRIES: Final = 20


class Faults:
    def __init__(self, run: Run) -> None:
        self._run = run
        self._world = run.world
        self._current: dict[int, tuple[Fault, Callable[[], None]]] = {}  # those that have not ended
        self._number = 0
        self._wounded: Machine | None = None  # has lost power, and not everything is in sync again
        # Those that wait for something to happen.
        self._armed: dict[str, list[Fault]] = {
            moment: [] for moment in ("elected", "joined", "left", "led", "moving", "moved", "created")
        }
        self._states: dict[str, dict[str, Any]] = {}  # of partitions, as they were last
        self._moving: set[str] = set()  # topics
        self.over = False
        self._world.on_change = self._tree_changed

    def schedule(self, faults: tuple[Fault, ...]) -> None:
        for fault in faults:
            begin = self._armed[fault.whom].append if fault.whom in self._armed else self._begin
            self._world.at(fault.at, lambda fault=fault, begin=begin: begin(fault))  # type: ignore[misc]

    def _tree_changed(self, path: str, data: bytes) -> None:
        """What is armed for this moment begins. Whoever is concerned hears of the change in a moment."""
        if path == "/controller":
            self._let_go("elected", json.loads(data)["brokerid"], 0.05)
        elif path.startswith("/brokers/topics/") and path.count("/") == 3:
            self._topic_changed(path, json.loads(data))
        elif path.endswith("/state") and path.startswith("/brokers/topics/"):
            state = json.loads(data)
            self._state_changed(path, self._states.get(path, state), state)
            self._states[path] = state

    def _topic_changed(self, path: str, topic: dict[str, Any]) -> None:
        if any(topic["adding_replicas"].values()):
            self._moving.add(path)
            self._let_go("moving", 0, 0.003)
        elif self._world.registry.tree.get(path).version == 0:
            self._let_go("created", 0, 0.0)
        elif path in self._moving:
            self._moving.remove(path)
            least, more = self._run.plan.delay
            self._let_go("moved", self._controller_id(), least + more / 2)  # orders take as long as that

    def _state_changed(self, path: str, before: dict[str, Any], state: dict[str, Any]) -> None:
        isr, leader = state["isr"], state["leader"]
        for newcomer in isr:
            if newcomer not in before["isr"]:
                self._let_go("joined", newcomer, 0.0, path)
        # Whoever could lead next. Which of them does is as good as chance.
        others = [each for each in isr if each != leader]
        if others and leader >= 0:
            next_leader = others[state["leader_epoch"] % len(others)]
            if len(isr) < len(before["isr"]):
                self._let_go("left", next_leader, 0.001, path)
            if leader != before["leader"]:
                self._let_go("led", next_leader, 0.001, path)

    def _let_go(self, what: str, broker_id: int, step: float, path: str = "") -> None:
        if self._armed[what] and not self.over:
            fault = self._armed[what].pop(0)
            fault = replace(fault, broker=broker_id or fault.broker, whom=path)
            self._world.later(step * fault.other, lambda: self._begin(fault))

    def _controller_id(self) -> int:
        """Whoever is the controller, as the tree has it, or 0."""
        node = self._world.registry.tree.find("/controller")
        return 0 if node is None else int(json.loads(node.data)["brokerid"])

    def stop(self) -> None:
        """End everything, and begin nothing more."""
        self.over = True
        for number in list(self._current):
            self._end(number)
        for machine in self._world.machines.values():
            machine.disk.is_full = machine.disk.is_slow = False
            machine.start()

    # --- beginning and ending ---

    def _begin(self, fault: Fault) -> None:
        if self.over:
            return
        machine = self._meant(fault)
        if machine is None:
            return
        if self._wounded is not None and fault.kind not in _HARMLESS:
            if not self._has_recovered(self._wounded):
                return
            self._wounded = None
        begin = getattr(self, f"_{fault.kind.replace(' ', '_')}")
        end = begin(machine, fault)
        if end is None:
            return
        self._number += 1
        number = self._number
        self._current[number] = (fault, end)
        self._world.later(fault.seconds, lambda: self._end(number))

    def _meant(self, fault: Fault) -> Machine | None:
        """Who is to suffer: a broker by its number, the controller, or whoever leads some partition."""
        machines, tree = self._world.machines, self._world.registry.tree
        if fault.whom == "controller":
            controller = self._controller_id()
            if controller:
                return machines.get(controller)
        elif fault.whom == "leader":
            states = [path for path, _ in tree.nodes() if path.endswith("/state")]
            if states:
                state = json.loads(tree.get(sorted(states)[fault.other * 7 % len(states)]).data)
                return machines.get(state["leader"])
        return machines.get(fault.broker)

    def _end(self, number: int) -> None:
        found = self._current.pop(number, None)
        if found is not None:
            found[1]()

    def _note(self, machine: Machine, what: str) -> None:
        self._world.happened(machine.name, what, "fault")

    # --- processes and machines ---

    def _kill(self, machine: Machine, fault: Fault) -> Callable[[], None] | None:
        if not machine.is_running:
            return None
        self._note(machine, "killed")
        machine.kill()
        return machine.start

    def _kill_all(self, machine: Machine, fault: Fault) -> Callable[[], None] | None:
        """What was written is in the systems' memories, so nothing is lost."""
        self._note(machine, "and all others are killed")
        machines = list(self._world.machines.values())
        for each in machines:
            each.kill()

        def start() -> None:
            for each in machines:
                self._world.later(each.chance.uniform(0, 3.0), each.start)

        return start

    def _stop(self, machine: Machine, fault: Fault) -> Callable[[], None] | None:
        if not machine.is_serving:
            return None
        self._note(machine, "stopped in order")

        def start_again() -> None:
            if machine.is_running:
                self._world.later(0.5, start_again)  # it takes its time
            else:
                machine.start()

        machine.stop()
        return start_again

    def _power(self, machine: Machine, fault: Fault) -> Callable[[], None] | None:
        if not machine.is_running or self._current:
            return None
        if not self.is_whole() or not self._run.survives_loss_of_power:
            return None
        self._note(machine, "loses power")
        self._wounded = machine
        self._run.invariants.forget_disk(machine.broker_id)
        machine.lose_power()
        return machine.start

    def _wipe(self, machine: Machine, fault: Fault) -> Callable[[], None] | None:
        """It comes back with a new, empty disk."""
        if not machine.is_running or self._current or not self.is_whole():
            return None
        self._note(machine, "loses its disk")
        self._wounded = machine
        self._run.invariants.forget_disk(machine.broker_id)
        machine.kill()
        machine.disk.wipe()
        return machine.start

    def _has_recovered(self, machine: Machine) -> bool:
        """Whether a broker that has lost something has everything again."""
        return self.is_whole() and self._run.invariants.has_everything(machine)

    def _pause(self, machine: Machine, fault: Fault) -> Callable[[], None] | None:
        loop = machine.pause()
        if loop is None:
            return None
        self._note(machine, f"stands still for {fault.seconds:.2f} s")

        def resume() -> None:
            if not loop.is_dead:
                self._note(machine, "moves again")
                loop.resume()

        return resume

    # --- the network ---

    def _cut(self, machine: Machine, ways: list[tuple[str, str]], what: str, mended: str) -> Callable[[], None]:
        self._note(machine, what)
        for source, target in ways:
            self._world.fabric.cut(source, target)

        def mend() -> None:
            self._note(machine, mended)
            for source, target in ways:
                self._world.fabric.mend(source, target)

        return mend

    def _others(self, machine: Machine) -> list[str]:
        return [each.host for each in self._world.machines.values() if each is not machine]

    def _isolate(self, machine: Machine, fault: Fault) -> Callable[[], None]:
        """From all other brokers; from clients and the registry too, half of the time."""
        hosts = self._others(machine)
        if fault.other % 2:
            hosts = [*hosts, *self._run.client_hosts, HOST]
        ways = [way for host in hosts for way in ((machine.host, host), (host, machine.host))]
        return self._cut(machine, ways, f"is cut off from {len(hosts)} hosts", "is reachable again")

    def _isolate_brokers(self, machine: Machine, fault: Fault) -> Callable[[], None]:
        """From all other brokers; clients and the registry are reached."""
        return self._isolate(machine, replace(fault, other=0))

    def _clients_unheard(self, machine: Machine, fault: Fault) -> Callable[[], None]:
        """What clients send waits on its way, and arrives later than they expect."""
        ways = [(host, machine.host) for host in self._run.client_hosts]
        return self._cut(machine, ways, "does not hear its clients", "hears its clients again")

    def _deaf(self, machine: Machine, fault: Fault) -> Callable[[], None]:
        ways = [(host, machine.host) for host in self._others(machine)]
        return self._cut(machine, ways, "hears nothing of the others", "hears the others again")

    def _mute(self, machine: Machine, fault: Fault) -> Callable[[], None]:
        ways = [(machine.host, host) for host in self._others(machine)]
        return self._cut(machine, ways, "is not heard by the others", "is heard again")

    def _one_way(self, machine: Machine, fault: Fault) -> Callable[[], None] | None:
        other = self._world.machines.get(fault.other)
        if other is None or other is machine:
            return None
        ways = [(machine.host, other.host)]
        return self._cut(machine, ways, f"is not heard by {other.name}", f"is heard by {other.name} again")

    def _split(self, machine: Machine, fault: Fault) -> Callable[[], None]:
        """Two groups of brokers. One of them may be without the registry; clients reach both."""
        machines = self._world.machines
        ids = list(machines)
        size = max(1, len(ids) // 2)
        group = [ids[(ids.index(machine.broker_id) + step * fault.other) % len(ids)] for step in range(size)]
        here = [machines[each].host for each in dict.fromkeys(group)]
        there = [each.host for each in machines.values() if each.host not in here]
        ways = [way for one in here for other in there for way in ((one, other), (other, one))]
        without = (here, there, [])[int(fault.at * 1000) % 3]
        ways += [way for host in without for way in ((host, HOST), (HOST, host))]
        names = " and ".join(str(each) for each in dict.fromkeys(group))
        registry = f", {len(without)} of them without the registry" if without else ""
        return self._cut(
            machine, ways, f"is split from others: {names} are alone{registry}", "is with the others again"
        )

    def _slow_link(self, machine: Machine, fault: Fault) -> Callable[[], None]:
        hosts = self._others(machine)
        links = [self._world.fabric.link(machine.host, host) for host in [*hosts, HOST]]
        links += [self._world.fabric.link(host, machine.host) for host in hosts]
        other = self._world.machines.get(fault.other)
        if other is not None and other is not machine:  # only between these two
            links = [
                self._world.fabric.link(machine.host, other.host),
                self._world.fabric.link(other.host, machine.host),
            ]
        self._note(machine, "has slow links")
        for link in links:
            link.delay += 0.2
            link.jitter += 0.5

        def end() -> None:
            self._note(machine, "has fast links again")
            for link in links:
                link.delay -= 0.2
                link.jitter -= 0.5

        return end

    def _reset_connections(self, machine: Machine, fault: Fault) -> None:
        sockets = self._world.fabric.of_host(machine.host)
        broken = [sock for sock in sockets if machine.chance.random() < 0.5]
        self._note(machine, f"loses {len(broken)} of {len(sockets)} connections")
        for sock in broken:
            sock.reset()

    def _stuck_connections(self, machine: Machine, fault: Fault) -> None:
        """Some connections to other brokers deliver nothing for a while; new ones do."""
        others = self._others(machine)
        sockets = [sock for sock in self._world.fabric.of_host(machine.host) if sock.remote_host in others]
        stuck = [sock for sock in sockets if machine.chance.random() < 0.5]
        self._note(machine, f"has {len(stuck)} of {len(sockets)} connections stuck for {fault.seconds:.2f} s")
        for sock in stuck:
            sock.stuck_until = self._world.now + fault.seconds

    def _late_answer(self, machine: Machine, fault: Fault) -> None:
        """A leader has just changed its ISR. It hears of that when it has been deposed and elected again."""
        world = self._world
        node = world.registry.tree.find(fault.whom)
        controller = world.machines.get(self._controller_id())
        leader = world.machines.get(json.loads(node.data)["leader"]) if node is not None else None
        if controller is None or leader is None or leader is machine:
            return
        self._note(leader, f"hears no answers of {controller.name} for {fault.seconds:.2f} s")
        for sock in world.fabric.of_host(controller.host):
            if sock.remote_host == leader.host and sock.local[1] == PORT:
                sock.stuck_until = world.now + fault.seconds
        world.later(fault.seconds * 0.2, lambda: self._lead(fault.whom, machine.broker_id))
        world.later(fault.seconds * 0.5, lambda: self._lead(fault.whom, leader.broker_id))

    # --- the registry ---

    def _registry_cut(self, machine: Machine, fault: Fault) -> Callable[[], None]:
        ways = [(machine.host, HOST), (HOST, machine.host)]
        if fault.other % 3 == 0:
            ways = ways[:1]
        elif fault.other % 3 == 1:
            ways = ways[1:]
        return self._cut(machine, ways, "is cut off from the registry", "reaches the registry again")

    def _registry_unheard(self, machine: Machine, fault: Fault) -> Callable[[], None]:
        """The registry hears this broker, and so its session lives; the broker does not know."""
        return self._cut(machine, [(HOST, machine.host)], "does not hear the registry", "hears the registry again")

    def _registry_expire(self, machine: Machine, fault: Fault) -> None:
        for registry in self._world.registries():
            for session in list(registry.sessions.values()):
                if session.name == machine.name:
                    self._note(machine, "loses its session")
                    session.expire()

    def _no_controller(self, machine: Machine, fault: Fault) -> None:
        """Somebody deletes the node, as operators do; the controller's session lives on, and it may not know yet."""
        tree = self._world.registry.tree
        if tree.find("/controller") is not None:
            self._note(machine, "or another broker is to be elected as the controller anew")
            self._world.registry.apply([Delete("/controller")], None)

    def _registry_down(self, machine: Machine, fault: Fault) -> Callable[[], None]:
        hosts = [each.host for each in self._world.machines.values()]
        ways = [way for host in hosts for way in ((host, HOST), (HOST, host))]
        return self._cut(machine, ways, "and all others are cut off from the registry", "and all others reach it again")

    def _slow_registry(self, machine: Machine, fault: Fault) -> Callable[[], None]:
        """What the registry says comes late, in its order."""
        link = self._world.fabric.link(HOST, machine.host)
        late = 0.2 * self._world.registry.session_timeout
        self._note(machine, "hears late from the registry")
        link.delay += late

        def end() -> None:
            self._note(machine, "hears from the registry in time again")
            link.delay -= late

        return end

    def _late_orders(self, machine: Machine, fault: Fault) -> Callable[[], None] | None:
        """The way from the controller is cut, and this broker's session ends: orders for its former life come late."""
        controller = self._meant(replace(fault, whom="controller"))
        if controller is None or controller is machine:
            return None
        mend = self._cut(
            machine, [(controller.host, machine.host)], f"does not hear {controller.name}", f"hears {controller.name}"
        )
        self._world.later(0.6 * fault.seconds, lambda: None if self.over else self._registry_expire(machine, fault))
        return mend

    def _stale_orders(self, machine: Machine, fault: Fault) -> None:
        """The controller's connections to this broker are stuck, and its session ends: orders for its former life come
        after those for the new one, which has new connections."""
        controller = self._world.machines.get(self._controller_id())
        if controller is None or controller is machine:
            return
        self._note(machine, f"hears what {controller.name} has to say to it {fault.seconds:.2f} s late")
        for sock in self._world.fabric.of_host(controller.host):
            if sock.remote_host == machine.host:
                sock.stuck_until = self._world.now + fault.seconds
        self._world.later(0.5 * fault.seconds, lambda: None if self.over else self._registry_expire(machine, fault))

    # --- leaders ---

    def _next_leader(self, machine: Machine, fault: Fault) -> None:
        """The controller has another replica in sync lead a partition. Nobody is dead."""
        tree = self._world.registry.tree
        if fault.whom.startswith("/"):
            self._lead(fault.whom, fault.broker)
            return
        paths = sorted(
            path for path, _ in tree.nodes() if path.startswith("/brokers/topics/") and path.endswith("/state")
        )
        if not paths:
            return
        path = paths[(fault.other * 7 + int(fault.at * 1000)) % len(paths)]
        state = json.loads(tree.get(path).data)
        others = [each for each in state["isr"] if each != state["leader"]]
        if not others:
            return
        self._lead(path, others[fault.broker % len(others)])

    def _lead(self, path: str, leader: int) -> None:
        """Have a broker lead the partition of this state, as soon as the controller can."""
        _, _, _, topic, _, index, _ = path.split("/")
        controller = self._world.machines.get(self._controller_id())
        if controller is None or controller.broker is None or controller.loop is None:
            return
        election = getattr(controller.broker, "controller", None)
        term = None if election is None else election.term
        if term is None:
            return
        self._note(controller, f"is to let broker {leader} lead {topic}-{index}")

        async def move() -> None:
            with suppress(Deposed, RegistryError):
                for _ in range(_TRIES):
                    if not (await term.move_leader(TopicPartition(topic, int(index)), leader)).error_code:
                        break
                    await asyncio.sleep(0.01)  # it has yet to hear who is in sync

        controller.loop.call_soon(lambda loop: loop.create_task(move()), controller.loop)

    # --- disks and clocks ---

    def _disk_full(self, machine: Machine, fault: Fault) -> Callable[[], None]:
        self._note(machine, "has a full disk")
        machine.disk.is_full = True

        def end() -> None:
            self._note(machine, "has room on its disk again")
            machine.disk.is_full = False

        return end

    def _disk_slow(self, machine: Machine, fault: Fault) -> Callable[[], None]:
        self._note(machine, "has a slow disk")
        machine.disk.is_slow = True

        def end() -> None:
            self._note(machine, "has a fast disk again")
            machine.disk.is_slow = False

        return end

    def _clock(self, machine: Machine, fault: Fault) -> None:
        """The wall clock jumps, forward or back, and stays there."""
        machine.clock_ahead_ms = machine.chance.choice((-60_000, -5_000, 5_000, 60_000, 3_600_000))
        self._note(machine, f"has a clock that is {machine.clock_ahead_ms / 1000:.0f} s ahead")
        if machine.is_running:
            machine.clock.ahead_ms = machine.clock_ahead_ms

    # --- the cluster as a whole ---

    def is_whole(self) -> bool:
        """Whether every broker serves and every replica is in sync, as the tree has it."""
        return self.what_is_missing() is None

    def what_is_missing(self) -> str | None:
        machines = self._world.machines
        for machine in machines.values():
            if not machine.is_serving:
                return f"{machine.name} does not serve"
        for registry in self._world.registries():
            tree = registry.tree
            if tree.find("/brokers/topics") is None:
                return "there is no tree"
            alive = set(tree.children("/brokers/ids"))
            for topic in tree.children("/brokers/topics"):
                assigned = json.loads(tree.get(f"/brokers/topics/{topic}").data)
                for moving in "adding_replicas", "removing_replicas":
                    for index, brokers in assigned.get(moving, {}).items():
                        if brokers:
                            return f"{topic}-{index} is still to move: {moving} are {brokers}"
                for index, wanted in assigned["partitions"].items():
                    node = tree.find(f"/brokers/topics/{topic}/partitions/{index}/state")
                    state = json.loads(node.data) if node is not None else None
                    if state is None or str(state["leader"]) not in alive:
                        return f"{topic}-{index} has no leader: {state}"
                    if sorted(state["isr"]) != sorted(wanted):
                        return f"{topic}-{index} is to be on {wanted}, and in sync are {state['isr']}"
        return self._stray()

    def _stray(self) -> str | None:
        """A broker that has a partition which is not assigned to it."""
        tree = self._world.registry.tree
        for machine in self._world.machines.values():
            for view, _ in replicas_of(machine.broker) if machine.broker is not None else ():
                node = tree.find(f"/brokers/topics/{view.topic}")
                assigned = {} if node is None else json.loads(node.data)["partitions"]
                if machine.broker_id not in assigned.get(str(view.partition), ()):
                    return f"{machine.name} has {view.topic}-{view.partition}, which is not assigned to it"
        return None
