"""`barnabas check`: verify the files of a data directory while no broker uses it.

The exit code is 0 if nothing is wrong, 1 if something is, and 2 if it could not be found out.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager

from barnabas.broker.check_registry import check_registry
from barnabas.command.ending import UsageError
from barnabas.command.table import as_json
from barnabas.storage.check import check_directory
from barnabas.storage.errors import DirectoryLocked
from barnabas.storage.log_directory import lock_directory
from barnabas.storage.partition_folder import partition_of_folder
from barnabas.storage.properties import META_PROPERTIES


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("directory", metavar="DIR", help="a broker's data directory: its --data, or log.dirs")
    parser.add_argument("--deep", action="store_true", help="also decompress and read every record")
    parser.add_argument("--json", action="store_true", help="print JSON instead of sentences")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    path = options.directory
    if not _is_data_directory(path):
        raise UsageError(f"{path} is not a data directory")
    try:
        with _locked(path):
            registry = check_registry(path)
            topics = registry.topics or {}
            uncompacted = {name for name, topic in topics.items() if not topic.compacted}
            problems = registry.problems + check_directory(path, deep=options.deep, uncompacted=uncompacted)
    except OSError as error:
        raise UsageError(f"{error.filename or path}: {error.strerror}") from None
    if options.json:
        print(as_json([problem._asdict() for problem in problems]))
    else:
        for problem in problems:
            print(problem)
        print(f"{len(problems)} problem{'' if len(problems) == 1 else 's'}" if problems else "nothing is wrong")
    return 1 if problems else 0


def _is_data_directory(path: str) -> bool:
    if not os.path.isdir(path):
        return False
    return any(name == META_PROPERTIES or partition_of_folder(name) is not None for name in os.listdir(path))


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
