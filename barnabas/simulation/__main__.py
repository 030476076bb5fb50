"""`python -m barnabas.simulation --seed 7`: run seeds, and tell the story of those that fail."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from barnabas.simulation.many import Outcome, run_many
from barnabas.simulation.plan import Plan, draw
from barnabas.simulation.run import run
from barnabas.simulation.shrink import shrink
from barnabas.simulation.story import tell
from barnabas.simulation.weather import WEATHERS


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m barnabas.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, help="run this seed, and tell its story")
    parser.add_argument("--seeds", help="run these seeds: 1-300", metavar="FIRST-LAST")
    parser.add_argument("--plan", type=Path, help="run a plan from a file that --save has written")
    parser.add_argument("--save", type=Path, help="write the plan that was run to a file")
    parser.add_argument("--brokers", type=int, help="how many brokers; drawn from the seed otherwise")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long faults happen (default: 60)")
    parser.add_argument("--weather", choices=WEATHERS, help="one kind of trouble again and again; drawn otherwise")
    parser.add_argument("--jobs", type=int, default=1, help="how many seeds run at once")
    parser.add_argument("--shrink", action="store_true", help="make a failing run as short as possible")
    parser.add_argument("--html", type=Path, help="draw the run as a picture, in this file")
    parser.add_argument("--verbose", action="store_true", help="tell everything")
    chosen = parser.parse_args(arguments)
    if chosen.seeds is not None:
        first, _, last = chosen.seeds.partition("-")
        return _run_many(range(int(first), int(last or first) + 1), chosen)
    if chosen.plan is not None:
        plan = Plan.from_json(chosen.plan.read_text(encoding="utf-8"))
    else:
        plan = draw(
            chosen.seed if chosen.seed is not None else 1,
            brokers=chosen.brokers,
            seconds=chosen.seconds,
            weather=chosen.weather,
        )
    result = run(plan)
    if chosen.shrink and result.findings:
        result = shrink(result, lambda text: print(text, file=sys.stderr))
    for line in tell(result, verbose=chosen.verbose):
        print(line)
    if chosen.save is not None:
        chosen.save.write_text(result.plan.to_json(), encoding="utf-8")
    if chosen.html is not None:
        from barnabas.simulation.html import picture

        chosen.html.write_text(picture(result), encoding="utf-8")
    return 1 if result.findings else 0


def _run_many(seeds: range, chosen: argparse.Namespace) -> int:
    """Run seeds on several cores. Prints those that fail, and a sum."""
    began = time.perf_counter()
    simulated = used = 0.0

    def told(outcome: Outcome) -> None:
        nonlocal simulated, used
        simulated += outcome.simulated_seconds
        used += outcome.seconds
        if outcome.promise or chosen.verbose:
            print(outcome.summary, flush=True)

    broken = run_many(seeds, chosen.brokers, chosen.seconds, chosen.weather, chosen.jobs, told)
    print(
        f"{len(seeds)} seeds, {simulated:.0f} s simulated in {time.perf_counter() - began:.0f} s"
        f" ({simulated / max(used, 0.001):.0f} s in a second of one core): {len(broken)} failed"
    )
    for promise in sorted({each.promise for each in broken}):
        print(f"    {promise}: {', '.join(str(each.seed) for each in broken if each.promise == promise)}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
