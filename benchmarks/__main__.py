"""Run the benchmarks named on the command line, or all of them: `python -m benchmarks codec`."""

import sys
from importlib import import_module

# Each is a module here with a function `main` that measures and prints.
BENCHMARKS = ["codec"]


def main(names: list[str]) -> int:
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        print(f"no such benchmark: {', '.join(unknown)}; there are: {', '.join(BENCHMARKS)}", file=sys.stderr)
        return 2
    for name in names or BENCHMARKS:
        import_module(f"benchmarks.{name}").main()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
