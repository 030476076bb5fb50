"""The brokers of a cluster, each of which a test can kill, stop, start, cut off and heal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from barnabas.errors import BarnabasError

if TYPE_CHECKING:
    from barnabas.control import ControlClient
    from barnabas.state import NodeState

__tracebackhide__ = True  # pytest shows the line of the test instead


class Node:
    """One broker. `id` is its broker id."""

    def __init__(self, control: ControlClient, broker_id: int) -> None:
        self._control = control
        self.id = broker_id

    def __repr__(self) -> str:
        return f"<broker {self.id}>"

    @property
    def state(self) -> NodeState:
        state: NodeState = self._control.call("GET", f"/nodes/{self.id}")
        return state

    @property
    def running(self) -> bool:
        return self.state["running"]

    @property
    def is_controller(self) -> bool:
        return self.state["controller"]

    @property
    def address(self) -> str:
        """HOST:PORT of this broker."""
        address = self.state["address"]
        if address is None:
            raise BarnabasError(f"broker {self.id} is not running")
        return address

    def kill(self) -> None:
        """End it as a crash would. Its data stays as it was at that moment, for `start`."""
        self._ask("kill")

    def stop(self) -> None:
        """Stop it cleanly: it hands over its leaderships first."""
        self._ask("stop")

    def start(self) -> None:
        """Start it again after `kill` or `stop`, at the same address and with the same data."""
        self._ask("start")

    def restart(self) -> None:
        """Stop it if it is running, and start it again."""
        if self.running:
            self.stop()
        self.start()

    def isolate(self, *, clients: bool = False) -> None:
        """Cut it off from the other brokers and from the registry, and with `clients` also from clients."""
        self._ask("isolate", {"clients": clients})

    def heal(self) -> None:
        """End what `isolate` did."""
        self._ask("heal")

    def _ask(self, what: str, body: Any = None) -> None:
        self._control.call("POST", f"/nodes/{self.id}/{what}", body or {}, timeout=60.0)


class Nodes(Mapping[int, Node]):
    """The brokers by their ids, which are 0, 1, 2, … unless `node.id` says where to begin."""

    def __init__(self, control: ControlClient) -> None:
        self._control = control
        states: list[NodeState] = control.call("GET", "/nodes")
        self._nodes = {state["id"]: Node(control, state["id"]) for state in states}

    def __getitem__(self, broker_id: int) -> Node:
        return self._nodes[broker_id]

    def __iter__(self) -> Iterator[int]:
        return iter(self._nodes)

    def __len__(self) -> int:
        return len(self._nodes)

    @property
    def controller(self) -> Node:
        states: list[NodeState] = self._control.call("GET", "/nodes")
        for state in states:
            if state["controller"]:
                return self._nodes[state["id"]]
        raise BarnabasError("there is no controller at this moment")
