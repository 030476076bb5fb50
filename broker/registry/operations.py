"""The changes that can be asked of the tree, as ZooKeeper has them. A list of them happens whole or not at all."""

from typing import Final, NamedTuple

ANY_VERSION: Final = -1
"""In place of an expected version: whatever the version is."""


class Create(NamedTuple):
    """Make a node, with version 0. Its parent must be there. An ephemeral one goes when its creator does."""

    path: str
    data: bytes = b""
    ephemeral: bool = False


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
    """Change nothing, but let the whole list fail unless the node is there with this version."""

    path: str
    version: int = ANY_VERSION


Operation = Create | Set | Delete | Check
