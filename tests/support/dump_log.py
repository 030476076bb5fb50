"""kafka-dump-log over files that we wrote, and its complaints as an error."""

import re
from collections.abc import Iterable
from pathlib import Path

from tests.support.apache_kafka import run_tool

COMPLAINTS = re.compile(r"isvalid: false|Found \d+ invalid bytes|Could not")

# The tool takes the offset before a segment's first to be -1, and so finds a gap before every segment but the first.
FALSE_ALARM = re.compile(r"Non-consecutive offsets in .*\n(  -1 is followed by \d+\n)+(?!  )")


class DumpLogError(AssertionError):
    """What the tool found wrong."""


def dump_log(files: Iterable[Path], *options: str) -> str:
    """What kafka-dump-log prints about these files. Whatever it finds wrong in them is a DumpLogError."""
    done = run_tool("kafka-dump-log", *options, "--files", ",".join(map(str, files)))
    complaints = FALSE_ALARM.sub("", done.stderr)
    if complaints or COMPLAINTS.search(done.stdout):
        raise DumpLogError(f"{complaints}{done.stdout}")
    return done.stdout
