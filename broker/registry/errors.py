"""What goes wrong in the registry.

RegistryError
  Conflict                        the tree is not as the operation expects it; nothing was changed
    NoNode                          there is no such node (for a create: no parent)
    NodeExists                      there is one already
    BadVersion                      the node was changed since its version was read
    NotEmpty                        a node with children cannot be deleted
    NoChildrenForEphemerals         an ephemeral node cannot have children
  RegistryUnavailable             what keeps the tree failed, or cannot be reached, or was closed
  SessionExpired                  the session is over, and its ephemeral nodes are gone
  RegistryLocked                  another process has the embedded tree open
  RegistryCorrupt                 the embedded tree's file is not one, or is damaged
"""


class RegistryError(Exception):
    """The root of what the registry raises."""


class Conflict(RegistryError):
    """An operation does not fit the tree. `path` is the node that it applied to."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path


class NoNode(Conflict):
    """There is no node at the path, or no parent for the one to be created."""


class NodeExists(Conflict):
    """There is a node at the path already."""


class BadVersion(Conflict):
    """The node's version is not the expected one."""


class NotEmpty(Conflict):
    """The node has children."""


class NoChildrenForEphemerals(Conflict):
    """The parent is ephemeral, and such nodes have no children."""


class RegistryUnavailable(RegistryError):
    """The change could not be made durable, or the registry is closed or out of reach.

    Where the registry is another process, the change may have happened nevertheless: check before trying again.
    """


class SessionExpired(RegistryError):
    """The registry has ended this session. Only a new one is of use."""


class RegistryLocked(RegistryError):
    """The embedded tree belongs to another process."""


class RegistryCorrupt(RegistryError):
    """The file is not an embedded tree, or is one that cannot be read."""
