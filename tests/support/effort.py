"""How many examples the property-based tests try.

`make test` tries all of them. `make check` runs with `--hypothesis-profile=quick` and tries a tenth.
"""

from hypothesis import settings


def examples(full: int) -> int:
    """How many examples to try where `make test` tries this many."""
    return max(1, full * settings.default.max_examples // 100)
