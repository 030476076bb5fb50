"""The modules beside a pipeline's file: imported afresh for every run, and sent to executors by content.

By content, because executors do not have the files, and because a file sent with `SparkContext.addPyFile` is known by
its name as long as the context lives: an edited module, or another pipeline's module of the same name, would be
refused. Afresh, because a process may run several pipelines, and may run one again after an edit.
"""

from __future__ import annotations

import importlib
import sys
import sysconfig
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType
from typing import Final

from pyspark import cloudpickle

from barnabas.pipeline.module_files import TAKEN, file_of

_INSTALLED: Final = tuple({sysconfig.get_path(name) for name in ("purelib", "platlib")})

_one_at_a_time = threading.RLock()  # sys.modules belongs to the whole process


@contextmanager
def imported_from(folder: Path) -> Iterator[None]:
    """While it is open, modules in `folder` can be imported; afterwards everything is restored.

    A module that the process had already imported from there stays, and is sent by content too.
    """
    with _one_at_a_time:
        finder = _Finder(folder.absolute())
        aside = {}
        for name, module in list(sys.modules.items()):
            if finder.has_loaded(name, module):
                finder.take(module)
            elif finder.hides(name, module):
                aside[name] = sys.modules.pop(name)
        had = set(finder.modules)
        sys.meta_path.insert(0, finder)
        importlib.invalidate_caches()
        try:
            yield
        finally:
            sys.meta_path.remove(finder)
            for module in finder.modules.values():
                cloudpickle.unregister_pickle_by_value(module)  # type: ignore[no-untyped-call]
            for name in (finder.modules.keys() | finder.folders) - had:
                _forget(name)
            sys.modules.update(aside)


def _forget(name: str) -> None:
    module = sys.modules.pop(name, None)
    package, _, child = name.rpartition(".")
    if package in sys.modules and getattr(sys.modules[package], child, None) is module is not None:
        delattr(sys.modules[package], child)


class _Finder(MetaPathFinder):
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.modules: dict[str, ModuleType] = {}  # those of the folder that are loaded
        self.folders: set[str] = set()  # packages without an __init__.py

    def has_loaded(self, name: str, module: ModuleType) -> bool:
        return file_of(name, self.folder) == Path(_file(module)) and getattr(module, "__name__", "") == name

    def hides(self, name: str, module: ModuleType) -> bool:
        """Whether a module from elsewhere must give way to one in the folder."""
        if name == "__main__" or _file(module).startswith(_INSTALLED):
            return False
        return file_of(name.partition(".")[0], self.folder) is not None

    def take(self, module: ModuleType) -> None:
        cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
        self.modules[module.__name__] = module

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        parent, _, _ = name.rpartition(".")
        if parent and list(path or ()) != [str(self._place(parent))]:
            return None  # below a package from elsewhere
        spec: ModuleSpec | None = None
        file = file_of(name, self.folder)
        if file is not None:
            inside = [str(file.parent)] if file.name == "__init__.py" else None
            spec = spec_from_file_location(
                name, file, loader=_ByContents(name, str(file), self), submodule_search_locations=inside
            )
        elif self._is_folder(name) and (parent or PathFinder.find_spec(name) is None):
            # A folder of modules without an __init__.py is a package if there is no other of that name.
            spec = ModuleSpec(name, None, is_package=True)
            spec.submodule_search_locations = [str(self._place(name))]
            self.folders.add(name)
        return spec

    def _is_folder(self, name: str) -> bool:
        return name.partition(".")[0] not in TAKEN and any(self._place(name).glob("*.py"))

    def _place(self, name: str) -> Path:
        return self.folder.joinpath(*name.split("."))


def _file(module: ModuleType) -> str:
    """Without triggering modules that load lazily."""
    return str(getattr(module, "__dict__", {}).get("__file__") or "")


class _ByContents(SourceFileLoader):
    def __init__(self, name: str, path: str, finder: _Finder) -> None:
        super().__init__(name, path)
        self._finder = finder

    def __reduce__(self) -> tuple[type[SourceFileLoader], tuple[str, str]]:
        return SourceFileLoader, (self.name, self.path)  # attributes that refer to the loader

    def get_code(self, fullname: str) -> CodeType:
        # Always compiled: a .pyc from before an edit within the same second would look current.
        return compile(self.get_data(self.path), self.path, "exec", dont_inherit=True)

    def exec_module(self, module: ModuleType) -> None:
        self._finder.take(module)
        super().exec_module(module)
