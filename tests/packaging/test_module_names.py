"""Four packages of `barnabas` are at the top of the repository and can be reached by two paths; each has one name."""

import importlib.util
import subprocess
import sys
from pathlib import Path

from tests.support.module_names import ROOT, loaded_twice

PROGRAM = """
import asyncio, importlib, pkgutil, sys, tempfile
from pathlib import Path
import barnabas
from tests.support.module_names import loaded_twice
from tests.support.running_broker import create_topic, running

for module in pkgutil.walk_packages(barnabas.__path__, "barnabas."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)

async def run_a_broker(folder):
    async with running(Path(folder)) as broker:
        await create_topic(broker)

with tempfile.TemporaryDirectory() as folder:
    asyncio.run(run_a_broker(folder))
ours = [name for name in sys.modules if name.startswith("barnabas.")]
assert len(ours) > 400, len(ours)
others = {name.split(".")[0] for name in sys.modules} & {"broker", "pipeline", "protocol", "storage"}
print(loaded_twice(), others)
"""


def test_no_module_has_two_names_when_everything_is_imported_and_a_broker_has_run() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "{} set()"


def test_a_file_that_is_loaded_twice_is_found() -> None:
    """A fixture in tests/conftest.py checks this at the end of the whole suite."""
    assert loaded_twice() == {}
    name = "a_second_name_of_this_file"
    spec = importlib.util.spec_from_file_location(name, __file__)
    assert spec is not None
    sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        assert loaded_twice() == {str(Path(__file__).resolve()): [__name__, name]}
    finally:
        del sys.modules[name]


def test_another_name_of_the_same_module_is_none_of_these() -> None:
    name = "an_alias"
    sys.modules[name] = sys.modules[__name__]
    try:
        assert loaded_twice() == {}
    finally:
        del sys.modules[name]
