"""Parent nodes without data, which must exist before anything is created below them."""

from collections.abc import Sequence

from barnabas.broker.registry.errors import NodeExists
from barnabas.broker.registry.registry import Registry
from barnabas.broker.registry.tree_operations import Create


async def make_parents(registry: Registry, paths: Sequence[str]) -> None:
    """Create these nodes if they do not exist. They are given from the top, and must be mirrored."""
    while missing := [path for path in paths if registry.find(path) is None]:
        try:
            await registry.multi([Create(path) for path in missing])
        except NodeExists:  # another broker was faster
            for path in missing:
                await registry.refresh(path)
