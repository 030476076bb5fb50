"""Checks the files of a data directory without changing anything.

Every batch is checked, and indexes, snapshots, leader epochs and checkpoints are compared with the log.

    directory   a whole data directory
    partition   one partition's folder
    segment     one segment: its batches and its indexes
    problem     a problem that was found

The caller must ensure that nothing writes to the directory meanwhile.

After a crash, the next start rebuilds the indexes and snapshots of the segments from the recovery point on, so those
need not be correct. Only the log of these segments is checked, and what the next start would cut off is reported.
"""

from barnabas.storage.check.directory import check_directory
from barnabas.storage.check.partition import check_partition
from barnabas.storage.check.problem import Problem

__all__ = ["Problem", "check_directory", "check_partition"]
