"""A user's Python function by its module path, in a way that executors have it too."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from pyspark import cloudpickle
from pyspark.sql import DataFrame

from pipeline.errors import PipelineError
from pipeline.model import PythonTransform

Function = Callable[..., DataFrame]


@contextmanager
def importable(folder: Path) -> Iterator[None]:
    """While it is open, modules beside the pipeline's file can be imported, and travel to executors by their contents.

    By contents, because executors do not have the file; afterwards they are forgotten, so that another pipeline of this
    process with a module of the same name gets its own.
    """
    before = set(sys.modules)
    place = str(folder.absolute())
    sys.path.insert(0, place)
    registered: list[ModuleType] = []

    def register() -> None:
        for name in set(sys.modules) - before:
            module = sys.modules[name]
            file = getattr(module, "__file__", None)
            if file and Path(file).parent == Path(place) and module not in registered:
                cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
                registered.append(module)

    _registrars.append(register)
    try:
        yield
    finally:
        _registrars.remove(register)
        sys.path.remove(place)
        for module in registered:
            cloudpickle.unregister_pickle_by_value(module)  # type: ignore[no-untyped-call]
            sys.modules.pop(module.__name__, None)


_registrars: list[Callable[[], None]] = []


def find(transform: PythonTransform) -> Function:
    module_name, _, name = transform.function.partition(":")
    try:
        importlib.invalidate_caches()
        module = importlib.import_module(module_name)
    except Exception as error:
        kind = type(error).__name__
        raise PipelineError(f"transforms.{transform.name}: importing {module_name} failed: {kind}: {error}") from error
    for register in _registrars:
        register()
    function = getattr(module, name, None)
    if not callable(function):
        raise PipelineError(f"transforms.{transform.name}: {module_name} has no function {name!r}")
    found: Function = function
    return found


def applied(transform: PythonTransform, inputs: list[DataFrame]) -> DataFrame:
    function = find(transform)
    try:
        result = function(*inputs, **transform.arguments)
    except PipelineError:
        raise
    except Exception as error:
        kind = type(error).__name__
        raise PipelineError(f"transforms.{transform.name}: {transform.function} raised {kind}: {error}") from error
    if not isinstance(result, DataFrame):
        kind = type(result).__name__
        raise PipelineError(f"transforms.{transform.name}: {transform.function} returned {kind}, not a DataFrame")
    return result
