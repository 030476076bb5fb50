"""barnabas.simulation.determinism: nothing takes time, chance or threads from the machine unnoticed."""

import ast
import asyncio
import os
import random
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from barnabas.broker.replica import worker
from barnabas.simulation.determinism import determinism
from barnabas.simulation.loop import Scheduler

_ROOT = Path(__file__).parents[3]

# What would differ from run to run, by module; with None, everything that the module has.
_FROM_THE_MACHINE = {
    "time": None,
    "random": None,
    "secrets": None,
    "threading": None,
    "subprocess": None,
    "multiprocessing": None,
    "uuid": {"uuid1", "uuid4"},
    "os": {"urandom", "getpid", "fork"},
    "concurrent.futures": {"ThreadPoolExecutor", "ProcessPoolExecutor"},
}

# Where that is used nevertheless, and why a simulation need not fear it.
_KNOWN = {
    "broker/broker.py": "random bytes and numbers come from the seed (determinism.py)",
    "broker/clock.py": "the system's clock; a simulation has its own",
    "broker/console/lags.py": "nobody looks into a simulation with a console",
    "broker/console/people.py": "nobody signs in to a simulation",
    "broker/console/serving.py": "nobody looks into a simulation with a console",
    "broker/group/coordinator.py": "uuid4 is made of random bytes, which come from the seed",
    "broker/interbroker/sasl_network.py": "brokers of a simulation have no passwords",
    "broker/metrics/metrics.py": "nobody asks a simulation for metrics",
    "broker/metrics/of_process.py": "nobody asks a simulation for metrics",
    "broker/registry/embedded.py": "a simulation has its own registry",
    "broker/replica/worker.py": "its threads are replaced",
    "broker/security/sasl/scram.py": "nobody authenticates in a simulation",
    "broker/token_follower.py": "there are no delegation tokens in a simulation",
    "broker/server/connection.py": "its clock is replaced",
    "broker/server/freeing.py": "its clock is replaced",
    "broker/server/metering.py": "nobody has a quota in a simulation",
    "broker/server/pieces.py": "its clock is replaced",
    "broker/server/tls_connection.py": "connections of a simulation have no TLS",
    "storage/cleaner/pace.py": "compaction has no limit in a simulation, so nobody waits",
    "storage/cleaner/work.py": "a simulation compacts in its own process",
    "storage/log.py": "jitter: the module's random numbers are seeded",
    "storage/log_directory.py": "its threads are replaced; the lock is never contended",
    "storage/partition_folder.py": "uuid4 is made of random bytes, which come from the seed",
}


def _uses(path):
    """Whether a module takes something from the machine."""
    modules = {}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name in _FROM_THE_MACHINE:
                    modules[alias.asname or alias.name] = _FROM_THE_MACHINE[alias.name]
        elif isinstance(node, ast.ImportFrom) and node.module in _FROM_THE_MACHINE:
            wanted = _FROM_THE_MACHINE[node.module]
            if wanted is None or any(alias.name in wanted for alias in node.names):
                return True
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules:
            wanted = modules[node.value.id]
            if wanted is None or node.attr in wanted:
                return True
    return False


def test_what_is_taken_from_the_machine_is_known():
    """Whoever adds a module here says how a simulation stays the same from run to run."""
    found = {
        str(path.relative_to(_ROOT))
        for folder in ("broker", "storage", "protocol")
        for path in (_ROOT / folder).rglob("*.py")
        if "testing" not in path.parts and _uses(path)
    }
    assert found == set(_KNOWN)


def test_random_bytes_come_from_the_seed_and_are_real_afterwards():
    def drawn(seed):
        scheduler = Scheduler(seed)
        loop = scheduler.process("broker")
        seen = []
        with determinism(scheduler):
            loop.call_soon(lambda: seen.append((uuid.uuid4(), os.urandom(8), random.random())))
            scheduler.run(end=1)
        return seen

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)
    assert os.urandom(16) != os.urandom(16)
    assert worker.ThreadPoolExecutor is ThreadPoolExecutor


def test_threads_of_a_worker_are_the_loop_itself():
    scheduler = Scheduler(1)
    loop = scheduler.process("broker")
    seen = []

    async def work():
        one = worker.Worker(loop, 4)
        one.run(lambda: 7, seen.append)
        one.run(lambda: 1 // 0, seen.append)
        seen.append(await one.call(lambda: 8))
        await asyncio.sleep(1)
        await one.stop()

    with determinism(scheduler):
        began = time.monotonic()
        scheduler.run(loop.create_task(work()).done)
    assert time.monotonic() - began < 1
    assert sorted(map(str, seen)) == ["7", "8", "integer division or modulo by zero"]
