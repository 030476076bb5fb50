"""python -m tests.fuzz: see `--help`, or `make fuzz`."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from pathlib import Path

from tests.fuzz.run import Bounds, Run


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Fuzz a broker of this working copy.")
    parser.add_argument("--frames", type=int, default=100_000, metavar="N", help="how many frames (100000)")
    parser.add_argument("--seed", type=int, help="what the frames are made from (a new one)")
    parser.add_argument("--first", type=int, default=1, metavar="N", help="the number of the first frame (1)")
    parser.add_argument("--turn-ms", type=float, default=60, help="fail for a longer turn of the loop (60); 0: never")
    parser.add_argument("--memory-mb", type=int, default=2000, help="fail for more memory (2000)")
    parser.add_argument("--restart-every", type=int, default=20_000, metavar="N", help="restart after N frames (20000)")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="where the broker's data and log are left")
    options = parser.parse_args()
    seed = random.SystemRandom().randrange(10**6) if options.seed is None else options.seed
    bounds = Bounds(options.turn_ms / 1000 or None, options.memory_mb)
    with tempfile.TemporaryDirectory(prefix="fuzz-") as temporary:
        folder = options.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        run = Run(seed, folder, bounds, lambda line: print(line, flush=True))
        report = run.frames(options.first, options.first + options.frames - 1, restart_every=options.restart_every)
    print(report)
    if report.problems:
        last = options.first + report.frames - 1
        print(f"again: python -m tests.fuzz --seed {seed} --frames {last}")
        print(f"only the last ones: python -m tests.fuzz --seed {seed} --first {max(1, last - 60)} --frames 61")
    return 1 if report.problems else 0


if __name__ == "__main__":
    sys.exit(main())
