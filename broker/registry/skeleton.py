"""Parent nodes without data, which have to be there before anything is put below them."""

from collections.abc import Sequence

from barnabas.broker.registry.errors import NodeExists
from barnabas.broker.registry.registry import Registry
from barnabas.broker.registry.tree_operations import Create


async def make_parents(registry: Registry, paths: Sequence[str]) -> None:
    """Have these nodes, which are given from the top. They have to be mirrored."""
    while missing := [path for path in paths if registry.find(path) is None]:
        try:
            await registry.multi([Create(path) for path in missing])
        except NodeExists:  # another broker was faster
            for path in missing:
                await registry.refresh(path)
