"""`barnabas check`: verify the files of a data directory that nobody uses.

Ends with 0 if nothing is wrong, with 1 if something is, and with 2 if that could not be found out.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager

from broker.cli.ending import UsageError, ends_quietly
from broker.cli.table import as_json
from storage.check import check_directory
from storage.errors import DirectoryLocked
from storage.log_directory import lock_directory
from storage.properties import META_PROPERTIES
from storage.topic_partition import TopicPartition


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("directory", metavar="DIR", help="what a broker keeps its data in: --data, or log.dirs")
    parser.add_argument("--deep", action="store_true", help="decompress and read every record, too")
    parser.add_argument("--json", action="store_true", help="print JSON instead of sentences")


@ends_quietly
def run(options: argparse.Namespace) -> int:
    path = options.directory
    if not _is_data_directory(path):
        raise UsageError(f"{path} is no data directory")
    try:
        with _locked(path):
            problems = check_directory(path, deep=options.deep)
    except OSError as error:
        raise UsageError(f"{error.filename or path}: {error.strerror}") from None
    if options.json:
        print(as_json([problem._asdict() for problem in problems]))
    else:
        for problem in problems:
            print(problem)
        print(f"{len(problems)} problems" if problems else "nothing is wrong")
    return 1 if problems else 0


def _is_data_directory(path: str) -> bool:
    if not os.path.isdir(path):
        return False
    return any(name == META_PROPERTIES or TopicPartition.of_folder(name) is not None for name in os.listdir(path))


@contextmanager
def _locked(path: str) -> Iterator[None]:
    try:
        lock = lock_directory(path)
    except DirectoryLocked:
        raise UsageError(f"{path} is in use; stop its broker first") from None
    try:
        yield
    finally:
        os.close(lock)
