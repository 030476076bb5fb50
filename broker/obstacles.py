"""Why a broker does not start, in a sentence for the user."""

from __future__ import annotations

import os

from barnabas.broker.cluster.registration import RegistrationRefused
from barnabas.broker.controller.topic_names import CLUSTER_METADATA_TOPIC
from barnabas.broker.controller.znodes import MalformedNode
from barnabas.broker.registry.errors import RegistryError
from barnabas.storage.errors import StorageError

# What may keep a broker from opening its data directory and joining its cluster.
OBSTACLES = (OSError, StorageError, RegistryError, MalformedNode, RegistrationRefused)


class CannotStart(Exception):
    """Why this broker does not start, in a sentence for the user."""


def refuse_directory_of_kraft(folder: str) -> None:
    """Raise CannotStart if an Apache Kafka with KRaft uses this data directory.

    Its topics are in its metadata log. This broker would know none of them and set all partitions aside.
    """
    if os.path.isdir(os.path.join(folder, f"{CLUSTER_METADATA_TOPIC}-0")):
        raise CannotStart(
            f"cannot use the data directory {folder}: it belongs to Apache Kafka with KRaft, whose metadata "
            "Barnabas cannot read; use another directory"
        )


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
