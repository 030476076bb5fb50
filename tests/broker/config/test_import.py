"""The broker starts within a fraction of a second, so its configuration must not import much."""

import subprocess
import sys

PROGRAM = """
import sys, abc, collections, enum, re, typing
import barnabas.broker
before = set(sys.modules)
from barnabas.broker.config import BrokerConfig
BrokerConfig.load(None, ["num.partitions=3"])
print(*sys.modules.keys() - before)
"""


def test_importing_the_configuration_imports_nothing_but_itself():
    output = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True).stdout
    imported = set(output.split())
    assert {name for name in imported if not name.startswith("barnabas.broker.config")} == set()
    assert "barnabas.broker.config.properties" not in imported, "needed only if there is a file"
