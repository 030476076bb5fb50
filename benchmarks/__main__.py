"""Run the benchmarks named on the command line, or all of them: `python -m benchmarks broker --quick`."""

import argparse
import sys
from importlib import import_module

# Each is a module with a function `main` that measures and prints.
BENCHMARKS = {
    "codec": "benchmarks.codec",
    "storage": "benchmarks.storage",
    "startup": "benchmarks.startup",
    "groups": "benchmarks.groups",
    "consumer-groups": "benchmarks.consumer_groups",
    "shares": "benchmarks.shares",
    "observers": "benchmarks.observers",
    "access": "benchmarks.access",
    "console": "benchmarks.console",
    "broker": "benchmarks.broker.run",
    "cluster": "benchmarks.cluster.run",
    "growth": "benchmarks.cluster.growth",
    "spark": "benchmarks.spark",
}
# Slow benchmarks, which run only when named.
BY_NAME_ONLY = ["spark"]
# Benchmarks whose `main` takes `quick`, to do less of everything.
HAVE_QUICK = [
    "storage",
    "groups",
    "consumer-groups",
    "shares",
    "observers",
    "access",
    "console",
    "broker",
    "cluster",
    "growth",
    "spark",
]
# Benchmarks of many parts, whose `main` takes `only`.
HAVE_ONLY = ["broker", "cluster"]


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks", description="Run benchmarks and print the results.")
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help=f"which: {', '.join(BENCHMARKS)}; by default all but {', '.join(BY_NAME_ONLY)}",
    )
    parser.add_argument("--quick", action="store_true", help="less of everything, in two minutes")
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="WORK",
        help=f"run only the parts whose names contain this; for {' and '.join(HAVE_ONLY)}",
    )
    options = parser.parse_args(arguments)
    unknown = [name for name in options.names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"no such benchmark: {', '.join(unknown)}; there are: {', '.join(BENCHMARKS)}")
    if options.only and not (len(options.names) == 1 and options.names[0] in HAVE_ONLY):
        parser.error(f"--only works with one of {', '.join(HAVE_ONLY)}")
    for name in options.names or [name for name in BENCHMARKS if name not in BY_NAME_ONLY]:
        benchmark = import_module(BENCHMARKS[name])
        if options.only:
            benchmark.main(quick=options.quick, only=options.only)
        elif options.quick and name in HAVE_QUICK:
            benchmark.main(quick=True)
        else:
            benchmark.main()


if __name__ == "__main__":
    main(sys.argv[1:])
