"""python -m tests.support.second_look: run the tests again, alone, that failed in the run before.

Tests in tests/integration drive other people's clients and processes by the dozen on two cores, and now and then one of
those stalls. CI reruns such a test before it gives up, and names it: it is still a bug, in the test, in the client or
in the broker. Any other failure is final: a failure of our own code alone, of a test that checks records after kills,
or of many tests.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path

LAST_FAILED = Path(".pytest_cache/v/cache/lastfailed")
WHERE = "tests/integration/"
FINAL = ("tests/integration/cluster/torture/", "tests/integration/exactly_once/")
AT_MOST = 3


def deserve_a_second_look(failed: Collection[str]) -> bool:
    return 0 < len(failed) <= AT_MOST and all(test.startswith(WHERE) and not test.startswith(FINAL) for test in failed)


def main() -> int:
    failed = sorted(json.loads(LAST_FAILED.read_text())) if LAST_FAILED.exists() else []
    if not deserve_a_second_look(failed):
        return 1
    again = ["-q", "-p", "no:xdist", "--last-failed", "--last-failed-no-failures=none", WHERE]
    result = subprocess.run([sys.executable, "-m", "pytest", *again])
    if result.returncode == 0:
        print("Failed in the crowd and passed alone. Find out why; CONTRIBUTING.md says how:", *failed, sep="\n  ")
    return result.returncode


if __name__ == "__main__":
    sys.exit(main())
