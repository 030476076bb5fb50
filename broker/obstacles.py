"""Why a broker does not start, in a sentence for the user."""

from __future__ import annotations

from barnabas.broker.cluster.registration import RegistrationRefused
from barnabas.broker.controller.znodes import MalformedNode
from barnabas.broker.registry.errors import RegistryError
from barnabas.storage.errors import StorageError

# What may keep a broker from opening its data directory and joining its cluster.
OBSTACLES = (OSError, StorageError, RegistryError, MalformedNode, RegistrationRefused)


class CannotStart(Exception):
    """Why this broker does not start, in a sentence for the user."""


def unusable(folder: str, error: Exception) -> CannotStart:
    """The sentence for a data directory that cannot be used."""
    reason = _one_line(error)
    if isinstance(error, OSError) and error.strerror:
        if error.filename in (None, folder):
            reason = "It is not a directory" if isinstance(error, FileExistsError) else error.strerror
        else:
            reason = f"{error.filename}: {error.strerror}"
    return CannotStart(f"cannot use the data directory {folder}: {reason}")


def _one_line(error: Exception) -> str:
    """What an error says. Damaged files may bring line ends into it."""
    return " ".join(str(error).split())


def cannot_start(folder: str, registry: str, error: Exception) -> CannotStart:
    """The sentence for one of the OBSTACLES. `registry` is how the registry is named."""
    reason = _one_line(error)
    if isinstance(error, RegistrationRefused):
        return CannotStart(reason)
    if isinstance(error, MalformedNode):
        return CannotStart(f"{registry} is damaged: {reason}")
    if isinstance(error, RegistryError):
        return CannotStart(f"cannot use {registry}: {reason}")
    return unusable(folder, error)
