"""Checks a whole data directory: its partitions, and the checkpoints against them."""

import os
from collections.abc import Collection, Mapping
from typing import Final

from barnabas.protocol.topic_partition import TopicPartition
from barnabas.storage.check.partition import CheckedPartition, PartitionCheck
from barnabas.storage.check.problem import Problem
from barnabas.storage.checkpoints import (
    CLEANER_OFFSET_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    read_offsets,
)
from barnabas.storage.errors import CorruptFile
from barnabas.storage.partition_folder import STRAY_SUFFIX, partition_of_folder
from barnabas.storage.properties import CLEAN_SHUTDOWN, META_PROPERTIES, MetaProperties

_CHECKPOINTS: Final = {
    RECOVERY_POINT_CHECKPOINT: "recovery point",
    HIGH_WATERMARK_CHECKPOINT: "high watermark",
    LOG_START_OFFSET_CHECKPOINT: "log start offset",
    CLEANER_OFFSET_CHECKPOINT: "first dirty offset",
}


def check_directory(path: str, *, deep: bool = False, uncompacted: Collection[str] = ()) -> list[Problem]:
    """The problems of a data directory. `deep` decompresses and reads every record.

    Logs of `uncompacted` topics must have no gaps, unless they were compacted before.
    """
    problems: list[Problem] = []
    _check_properties(path, problems)
    offsets = {name: _read_checkpoint(os.path.join(path, name), problems) for name in _CHECKPOINTS}
    stopped_in_order = os.path.exists(os.path.join(path, CLEAN_SHUTDOWN))
    for name in sorted(os.listdir(path)):
        partition = partition_of_folder(name)
        folder = os.path.join(path, name)
        if name.endswith(STRAY_SUFFIX):
            problems.append(Problem(folder, None, "was set aside at startup because no topic had this partition"))
        if partition is None or not os.path.isdir(folder):
            continue
        was_compacted = partition in offsets[CLEANER_OFFSET_CHECKPOINT]
        recovery_point = None if stopped_in_order else offsets[RECOVERY_POINT_CHECKPOINT].get(partition, 0)
        checked = PartitionCheck(
            folder,
            stopped_in_order=stopped_in_order,
            recovery_point=recovery_point,
            deep=deep,
            may_have_gaps=was_compacted or partition.topic not in uncompacted,
        ).run()
        problems += checked.problems
        known = {name: of_all[partition] for name, of_all in offsets.items() if partition in of_all}
        problems += _check_offsets(path, partition, checked, known)
    return problems


def _check_properties(path: str, problems: list[Problem]) -> None:
    try:
        if MetaProperties.read(path) is None:
            problems.append(Problem(os.path.join(path, META_PROPERTIES), None, "is missing"))
    except CorruptFile as error:
        problems.append(Problem(os.path.join(path, META_PROPERTIES), None, str(error).partition(": ")[2]))


def _read_checkpoint(path: str, problems: list[Problem]) -> dict[TopicPartition, int]:
    try:
        return read_offsets(path)
    except CorruptFile as error:
        problems.append(Problem(path, None, str(error).partition(": ")[2]))
        return {}


def _check_offsets(
    path: str, partition: TopicPartition, checked: CheckedPartition, known: Mapping[str, int]
) -> list[Problem]:
    return [
        Problem(
            os.path.join(path, name),
            None,
            f"the {_CHECKPOINTS[name]} of {partition} is {offset}, but its log ends at {checked.end_offset}",
        )
        for name, offset in known.items()
        if offset > checked.end_offset
    ]
