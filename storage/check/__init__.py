"""Whether the files of a data directory are what they should be. Nothing is changed.

Every batch is checked, and what lies beside the log is held against it: indexes, snapshots, leader epochs, checkpoints.

    directory   a whole data directory
    partition   one partition's folder
    segment     one segment: its batches and its indexes
    problem     what is wrong

The caller sees to it that nobody writes to the directory meanwhile.

After a crash some files need not be right, since the next start makes them anew: those beside the log, for the segments
from the recovery point on. Of these only the log itself is checked, and what the next start would cut off is reported.
"""

from storage.check.directory import check_directory
from storage.check.partition import check_partition
from storage.check.problem import Problem

__all__ = ["Problem", "check_directory", "check_partition"]
