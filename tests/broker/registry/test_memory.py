"""The registry that other tests use keeps the contract too."""

import pytest

from tests.broker.registry.contract import RegistryContract
from tests.broker.registry.memory import MemoryRegistry


@pytest.fixture
def registry() -> MemoryRegistry:
    return MemoryRegistry()


class TestMemoryRegistry(RegistryContract):
    pass
