"""CRC-32C, in hardware.

Importing the crc32c package looks up its own version, and the modules needed for that account for a tenth of a broker's
start-up time. Only one function of its extension module is used, so that module is loaded directly.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec

Crc32c = Callable[[memoryview | bytes | bytearray], int]


def _load() -> Crc32c:
    package = find_spec("crc32c")  # does not import it
    places = package.submodule_search_locations if package is not None else None
    extension = PathFinder.find_spec("_crc32c", places) if places is not None else None
    if extension is not None and extension.loader is not None:
        module = module_from_spec(extension)
        extension.loader.exec_module(module)
        function: Crc32c = module.crc32c
        return function
    from crc32c import crc32c  # the package has another layout

    return crc32c


crc32c = _load()
