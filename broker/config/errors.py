"""What goes wrong with settings.

    ConfigError                 at start: every problem of the file and the command line at once
    InvalidConfigError          a name or value that cannot be (Kafka's INVALID_CONFIG)
    InvalidConfigRequestError   a change that makes no sense whatever its value (Kafka's INVALID_REQUEST)

The last two carry one sentence, fit for an error message on the wire.
"""

from collections.abc import Iterable, Sequence


class InvalidConfigError(Exception):
    """A setting's name is unknown, or its value is ill-typed, out of range, or at odds with another setting."""


class InvalidConfigRequestError(Exception):
    """A request to alter settings is malformed: a value is missing, or one name occurs twice."""


class ConfigError(Exception):
    """The configuration cannot be used; `problems` has one sentence for each reason."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`, did you mean X?` for the known name nearest to this one, or nothing."""
    import difflib  # only somebody who mistyped a name pays for this import

    nearest = difflib.get_close_matches(name, known, n=1, cutoff=0.75)
    return f"; did you mean {nearest[0]}?" if nearest else ""
