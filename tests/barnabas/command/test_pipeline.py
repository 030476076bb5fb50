"""`barnabas pipeline` where what it needs is not installed, and before Spark is loaded. What it does otherwise:
tests/pipeline/test_command.py."""

import subprocess
import sys

import pytest

FILE = """\
name: orders
sources: {orders: {topic: orders, value: json, schema: id INT}}
transforms: {large: SELECT * FROM orders WHERE id > 100}
sinks: {out: {from: large, topic: out}}
checkpoint: checkpoint
"""

LIBRARIES = ("pyspark", "pyarrow", "numpy", "confluent_kafka")
# A finder that is asked first: it says what has been printed before a library is imported.
FIRST_LINE = f"""
import io, os, sys
from importlib.abc import MetaPathFinder

class Watch(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name in {LIBRARIES}:
            printed = sys.stdout.getvalue()
            sys.__stdout__.write(f"{{printed}}{{name}} is imported")
            sys.__stdout__.flush()
            os._exit(0)

sys.meta_path.insert(0, Watch())
sys.stdout = io.StringIO()
from barnabas.command import main
main()
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "orders.yaml"
    path.write_text(FILE)
    return path


@pytest.mark.parametrize(
    ("action", "missing"), [("init", "yaml"), ("validate", "yaml"), ("status", "confluent_kafka"), ("run", "pyspark")]
)
def test_what_is_not_installed_is_reported_in_a_sentence(action, missing, file):
    without = f"import sys; sys.modules[{missing!r}] = None; from barnabas.command import main; sys.exit(main())"
    ended = subprocess.run(
        [sys.executable, "-c", without, "pipeline", action, str(file)], capture_output=True, text=True, timeout=60
    )
    assert ended.returncode == 2
    assert f"{missing}, which is not installed: pip install '.[pipeline]' in a clone of Barnabas" in ended.stderr
    assert file.read_text() == FILE
    assert list(file.parent.iterdir()) == [file]


def test_a_run_says_what_it_waits_for_before_it_loads_spark(file):
    arguments = [sys.executable, "-c", FIRST_LINE, "pipeline", "run", str(file)]
    said = subprocess.run(arguments, capture_output=True, text=True, timeout=60, check=True).stdout
    line, imported = said.splitlines()
    assert line == "pipeline orders: starting Spark: loading its libraries…"
    assert imported.endswith("is imported")


def test_a_file_is_checked_without_spark(file):
    arguments = [sys.executable, "-c", FIRST_LINE, "pipeline", "validate", str(file)]
    assert subprocess.run(arguments, capture_output=True, text=True, timeout=60, check=True).stdout == ""
