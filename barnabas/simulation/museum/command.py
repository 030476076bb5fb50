"""`barnabas museum`: list the exhibits, or play one."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from barnabas.command.ending import complain
from barnabas.simulation.museum import EXHIBITS
from barnabas.simulation.museum.exhibit import CannotPlay
from barnabas.simulation.story import tell

_NOT_FOUND = 1
_UNUSABLE = 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("exhibit", metavar="EXHIBIT", nargs="?", help="the mistake to play; without it, list them all")
    parser.add_argument("--seed", type=int, help="play this seed instead of the one that is known to show it")
    parser.add_argument("--find", metavar="N", type=int, help="look for a seed that shows it, among the first N")
    parser.add_argument("--html", metavar="FILE", type=Path, help="draw the run as a picture, in this file")
    parser.add_argument("--verbose", action="store_true", help="tell everything")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """0: the mistake was found; 1: it was not; 2: there is no such exhibit."""
    if options.exhibit is None:
        width = max(map(len, EXHIBITS))
        for each in EXHIBITS.values():
            shown = "no seed yet" if each.seed is None else f"seed {each.seed}"
            print(f"{each.name:<{width}}  {each.title} ({shown})")
        return 0
    exhibit = EXHIBITS.get(options.exhibit)
    if exhibit is None:
        complain(f"there is no exhibit {options.exhibit}; 'barnabas museum' lists them")
        return _UNUSABLE
    print(f"{exhibit.title} ({exhibit.pointers})\n{exhibit.page}")
    seed: int | None = options.seed
    try:
        if options.find is not None:
            seed = exhibit.find(range(1, options.find + 1))
            if seed is None:
                print(f"not found by seeds 1 to {options.find}")
                return _NOT_FOUND
        elif seed is None and exhibit.seed is None:
            print("No seed is known to show it. --find 500 looks for one.")
            return _NOT_FOUND
        result = exhibit.show() if seed is None else exhibit.play(seed)
    except CannotPlay as error:
        complain(str(error))
        return _UNUSABLE
    for line in tell(result, verbose=options.verbose):
        print(line)
    if options.html is not None:
        from barnabas.simulation.html import picture

        options.html.write_text(picture(result), encoding="utf-8")
        print(f"the picture is in {options.html}", file=sys.stderr)
    return 0 if result.findings else _NOT_FOUND
