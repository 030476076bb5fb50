"""A pipeline's file: YAML with line numbers, read into the plain objects of `barnabas.pipeline.model`."""

from __future__ import annotations

from barnabas.pipeline.file.reading import FileError, Located, load

__all__ = ["FileError", "Located", "load"]
