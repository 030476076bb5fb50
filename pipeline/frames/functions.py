"""A user's Python function by its module path, applied to views."""

from __future__ import annotations

import importlib
from collections.abc import Callable

from pyspark.sql import DataFrame

from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.model import PythonTransform

Function = Callable[..., DataFrame]


def find(transform: PythonTransform) -> Function:
    module_name, _, name = transform.function.partition(":")
    try:
        module = importlib.import_module(module_name)
    except Exception as error:
        kind = type(error).__name__
        raise PipelineError(f"transforms.{transform.name}: importing {module_name} failed: {kind}: {error}") from error
    function = getattr(module, name, None)
    if not callable(function):
        raise PipelineError(f"transforms.{transform.name}: {module_name} has no function {name!r}")
    found: Function = function
    return found


def applied(transform: PythonTransform, inputs: list[DataFrame]) -> DataFrame:
    """Call this while the modules of the pipeline's folder are importable: it packs what executors run."""
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
