"""Faults from a file: a list of them in YAML (or JSON, which is also YAML), with the same names as everywhere.

    - api: Produce
      topic: orders
      error: NOT_LEADER_OR_FOLLOWER
      times: 2
    - {api: Fetch, delay_ms: 250, probability: 0.1, seed: 7}

The list may be under `faults:`. All are checked before any is added.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from barnabas.broker.testing.faults.fault import FaultError, parse


class ScriptError(ValueError):
    """Why a file of faults cannot be used."""


def load(path: str) -> list[Mapping[str, Any]]:
    """The faults of a file, checked. Raises ScriptError."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ScriptError(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    faults = _read(path, text)
    if isinstance(faults, Mapping) and set(faults) == {"faults"}:
        faults = faults["faults"]
    if not isinstance(faults, list):
        raise ScriptError(f"{path}: it contains no list of faults")
    for number, fault in enumerate(faults, 1):
        try:
            parse(fault)
        except FaultError as error:
            raise ScriptError(f"{path}: fault {number}: {error}") from error
    return faults


def _read(path: str, text: str) -> Any:
    if path.endswith(".json"):
        try:
            return json.loads(text)
        except ValueError as error:
            raise ScriptError(f"{path}: {error}") from error
    try:
        import yaml
    except ImportError:
        raise ScriptError(
            f"{path}: reading YAML needs PyYAML: pip install '.[yaml]' in a clone of Barnabas "
            "(a file that ends in .json needs nothing)"
        ) from None
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ScriptError(f"{path}: {' '.join(str(error).split())}") from error
