"""The errors of settings.

    ConfigError                 at start: all problems of the file and the command line at once
    InvalidConfigError          a name or value that is not allowed (Kafka's INVALID_CONFIG)
    InvalidConfigRequestError   an alteration that makes no sense whatever its value (Kafka's INVALID_REQUEST)

The last two hold one sentence, which is sent to the client.
"""

from collections.abc import Iterable, Sequence

# A comparison takes time that grows with the length of the name, and a client may send any name.
_LONGEST_MISTYPED_NAME = 100


class InvalidConfigError(Exception):
    """A setting's name is unknown, or its value has the wrong type, is out of range, or contradicts another setting."""


class InvalidConfigRequestError(Exception):
    """A request to alter settings is malformed: a value is missing, or one name occurs twice."""


class ConfigError(Exception):
    """The configuration cannot be used; `problems` has one sentence for each reason."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`; did you mean X?` for the known name that is most similar to this one, or nothing."""
    import difflib  # only a mistyped name pays for this import

    if len(name) > _LONGEST_MISTYPED_NAME:
        return ""
    nearest = difflib.get_close_matches(name, known, n=1, cutoff=0.75)
    return f"; did you mean {nearest[0]}?" if nearest else ""
