"""A problem in a file."""

from typing import NamedTuple


class Problem(NamedTuple):
    path: str
    # The byte position, if the problem has one.
    position: int | None
    message: str

    def __str__(self) -> str:
        place = self.path if self.position is None else f"{self.path}, byte {self.position}"
        return f"{place}: {self.message}"
