"""The assignors of consumer groups: pure functions from a group and its topics to who gets which partitions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from barnabas.broker.group.assignors import range_assignor, uniform
from barnabas.broker.group.assignors.spec import Assignment, GroupSpec, TopicPartitions

Assignor = Callable[[GroupSpec, Mapping[bytes, TopicPartitions]], Assignment]

ASSIGNORS: Final[Mapping[str, Assignor]] = {"uniform": uniform.assign, "range": range_assignor.assign}
