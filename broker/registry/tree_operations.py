"""The operations on the tree, as in ZooKeeper. A list of them happens completely or not at all."""

from typing import Final, NamedTuple

ANY_VERSION: Final = -1
"""Stands for any version."""


class Create(NamedTuple):
    """Create a node with version 0. Its parent must exist. An ephemeral one goes when its creator's session ends.

    A sequential one gets a number of ten digits at the end of its name, higher than those created there before.
    """

    path: str
    data: bytes = b""
    ephemeral: bool = False
    sequential: bool = False


class Set(NamedTuple):
    """Replace a node's data and raise its version by one."""

    path: str
    data: bytes
    version: int = ANY_VERSION


class Delete(NamedTuple):
    """Remove a node that has no children."""

    path: str
    version: int = ANY_VERSION


class Check(NamedTuple):
    """Change nothing, but fail the whole list unless the node has this version."""

    path: str
    version: int = ANY_VERSION


Operation = Create | Set | Delete | Check
