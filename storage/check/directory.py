"""A whole data directory: its partitions, and the checkpoints held against them."""

import os
from collections.abc import Mapping
from typing import Final

from storage.check.partition import CheckedPartition, PartitionCheck
from storage.check.problem import Problem
from storage.checkpoints import (
    CLEANER_OFFSET_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    read_offsets,
)
from storage.errors import CorruptFile
from storage.properties import CLEAN_SHUTDOWN, META_PROPERTIES, MetaProperties
from storage.topic_partition import TopicPartition

_CHECKPOINTS: Final = {
    RECOVERY_POINT_CHECKPOINT: "recovery point",
    HIGH_WATERMARK_CHECKPOINT: "high watermark",
    LOG_START_OFFSET_CHECKPOINT: "log start offset",
    CLEANER_OFFSET_CHECKPOINT: "first dirty offset",
}


def check_directory(path: str, *, deep: bool = False) -> list[Problem]:
    """What is wrong with a data directory. `deep` decompresses and reads every record."""
    problems: list[Problem] = []
    _check_properties(path, problems)
    offsets = {name: _read_checkpoint(os.path.join(path, name), problems) for name in _CHECKPOINTS}
    stopped_in_order = os.path.exists(os.path.join(path, CLEAN_SHUTDOWN))
    for name in sorted(os.listdir(path)):
        partition = TopicPartition.of_folder(name)
        folder = os.path.join(path, name)
        if partition is None or not os.path.isdir(folder):
            continue
        recovery_point = None if stopped_in_order else offsets[RECOVERY_POINT_CHECKPOINT].get(partition, 0)
        checked = PartitionCheck(
            folder, stopped_in_order=stopped_in_order, recovery_point=recovery_point, deep=deep
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
            f"the {_CHECKPOINTS[name]} of {partition} is {offset}, and its log ends at {checked.end_offset}",
        )
        for name, offset in known.items()
        if offset > checked.end_offset
    ]
