"""The examples, run as a reader would run them."""

import ast
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples"
SHARE = re.compile(r"(\w+) +member \d: (\[.*\])")


def test_assignors(shared_broker):
    command = [sys.executable, EXAMPLES / "assignors.py", shared_broker.bootstrap_servers]
    printed = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=60).stdout

    shares = defaultdict(list)
    for line in printed.splitlines():
        assignor, partitions = SHARE.fullmatch(line).groups()
        shares[assignor].append(ast.literal_eval(partitions))
    everything = [0, 1, 2, 3, 4, 5]
    assert shares["broadcast"] == [everything, everything]
    assert len(shares["random"]) == 2
    assert sorted(number for share in shares["random"] for number in share) == everything
