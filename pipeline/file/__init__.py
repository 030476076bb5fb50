"""A pipeline's file: YAML with line numbers, to the plain objects of `pipeline.model`."""

from __future__ import annotations

from pipeline.file.reading import FileError, Located, load

__all__ = ["FileError", "Located", "load"]
