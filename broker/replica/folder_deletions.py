"""Deleting the folders of partitions: renamed at once, removed by the worker, one after another."""

from __future__ import annotations

from collections import deque

from barnabas.broker.replica.worker import Worker
from barnabas.broker.set_aside import SetAside
from barnabas.protocol.topic_partition import TopicPartition
from barnabas.storage.log_directory import LogDirectory, PendingFolderDeletion


class FolderDeletions:
    def __init__(self, directory: LogDirectory, worker: Worker, set_aside: SetAside) -> None:
        self._directory = directory
        self._worker = worker
        self._set_aside = set_aside
        self._pending: deque[PendingFolderDeletion] = deque()

    @property
    def are_due(self) -> bool:
        return bool(self._pending)

    def add(self, name: TopicPartition) -> bool:
        """Delete a partition's log. False if its folder could not even be renamed: the next start will find it."""
        folder = self._directory.logs[name].folder
        try:
            self._pending.append(self._directory.delete_log(name))
        except OSError as error:
            self._set_aside.add("folder", folder, f"it could not be deleted: {error}")
            return False
        if len(self._pending) == 1:
            self._delete_next()
        return True

    def stop(self) -> None:
        """Leave folders that are still to be removed to the next start."""
        while len(self._pending) > 1:
            self._pending.pop()

    def _delete_next(self) -> None:
        """One at a time: other work for the threads, such as a flush that somebody waits for, comes in between."""
        self._worker.run(self._pending[0].run, self._deleted)

    def _deleted(self, outcome: Exception | None) -> None:
        if outcome is not None:
            self._set_aside.add("folder", self._pending[0].path, f"it could not be deleted: {outcome}")
        self._pending.popleft()
        if self._pending:
            self._delete_next()
