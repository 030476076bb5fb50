"""barnabas.storage.file_names"""

import pytest

from barnabas.storage.file_names import offset_file, parse_offset_file


def test_a_name_is_the_offset_in_twenty_digits() -> None:
    assert offset_file("folder", 368769, ".log") == "folder/00000000000000368769.log"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("00000000000000368769.log", (368769, ".log")),
        ("00000000000000368769.index.deleted", (368769, ".index.deleted")),
        ("09223372036854775807.log", (2**63 - 1, ".log")),
        ("368769.log", None),
        ("00000000000000368769", None),
        ("0000000000000036876x.log", None),
        ("leader-epoch-checkpoint", None),
    ],
)
def test_names_are_read_back(name: str, expected: tuple[int, str] | None) -> None:
    assert parse_offset_file(name) == expected
