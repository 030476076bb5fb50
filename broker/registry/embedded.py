"""The registry of a single process: a tree in memory that is kept in one SQLite file.

The tree in memory decides and answers; the file only makes it durable. Mutations wait in a queue. One task takes all
that have accumulated, tries each against the tree, writes their changes in one transaction on a worker thread, and
only then applies them to the tree. So many mutations share one fsync, and the loop never waits for the disk.

The file:
- One table, one row per node. Ephemeral nodes exist only in memory: they go with the process, as they should.
- A write-ahead log (journal_mode=WAL) synced at every commit (synchronous=FULL): a commit costs one fsync where a
  rollback journal costs three or more. A process or a machine that dies leaves a log whose last transaction is
  complete or ignored.
- Locked by this process as long as it is open (locking_mode=EXCLUSIVE): nobody changes it behind the tree's back, and
  the log needs no shared memory, so that any file system will do.
"""

import asyncio
import os
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import NamedTuple

import structlog

from barnabas.broker.registry.errors import RegistryCorrupt, RegistryError, RegistryLocked, RegistryUnavailable
from barnabas.broker.registry.registry import Change, Node
from barnabas.broker.registry.tree import Staging, Tree, is_path, parent_of
from barnabas.broker.registry.tree_operations import Operation
from barnabas.broker.registry.tree_registry import TreeRegistry

log = structlog.get_logger()

_APPLICATION_ID = 0x42524E42
_SCHEMA_VERSION = 1
_SCHEMA = f"""
    BEGIN IMMEDIATE;
    CREATE TABLE node (
        path TEXT PRIMARY KEY,
        data BLOB NOT NULL,
        version INTEGER NOT NULL
    ) WITHOUT ROWID;
    PRAGMA application_id = {_APPLICATION_ID};
    PRAGMA user_version = {_SCHEMA_VERSION};
    COMMIT;
"""

# Each statement releases the interpreter lock and has to get it back from the loop's thread, so rows go in groups.
_ROWS_PER_STATEMENT = 1000


_STAGED_PER_TURN = 500


class _Transaction(NamedTuple):
    operations: Sequence[Operation]
    done: asyncio.Future[None]


class EmbeddedRegistry(TreeRegistry):
    """See the module's description. Opened once, by `open`, before or on the loop that uses it."""

    def __init__(self, path: str, database: sqlite3.Connection, tree: Tree) -> None:
        super().__init__(tree)
        self.name = path
        self._database = database
        self._queue: list[_Transaction] = []
        self._writing: asyncio.Task[None] | None = None
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="registry")
        self._closed = False
        # Like ZooKeeper's: numbers from before this start are lower, because every start elects a controller.
        starts = tree.find("/controller_epoch")
        self._zxid = (1 if starts is None else starts.version + 2) << 32
        self._failure = ""  # of the last write, so that a repeated failure is logged once

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, durable: bool = True) -> "EmbeddedRegistry":
        """Open the tree kept at `path`, or a new and empty one; raises RegistryLocked or RegistryCorrupt.

        Without `durable` nothing is synced: it survives the process, but not the machine.
        """
        path = os.path.abspath(path)
        try:
            database = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
        except sqlite3.Error as error:
            raise _opening_error(path, error) from error
        try:
            _lock(database, durable)
            if _is_empty(database):
                database.executescript(_SCHEMA)
                if durable:
                    _sync_folder(os.path.dirname(path))
            if not _is_registry(database):
                raise RegistryCorrupt(f"{path} is not a registry, or is one of a newer version")
            return cls(path, database, _load(path, database))
        except sqlite3.Error as error:
            database.close()
            raise _opening_error(path, error) from error
        except RegistryError:
            database.close()
            raise

    async def multi(self, operations: Sequence[Operation]) -> None:
        if self._closed:
            raise RegistryUnavailable("the registry is closed")
        done = asyncio.get_running_loop().create_future()
        self._queue.append(_Transaction(operations, done))
        if self._writing is None:
            self._writing = asyncio.create_task(self._write())
        await done

    async def mirror(self, path: str) -> None:
        """The tree is in memory anyway."""

    async def refresh(self, path: str) -> None:
        """Memory always has the current state."""

    def on_expired(self, callback: Callable[[], None]) -> None:
        """Never called: this process keeps the tree itself."""

    @property
    def is_writing(self) -> bool:
        return self._writing is not None

    def rows(self) -> list[tuple[str, bytes, int]]:
        """All durable nodes as they are now: path, data, version."""
        return [(path, node.data, node.version) for path, node in self.tree.nodes() if not node.ephemeral]

    @staticmethod
    def write_copy(path: str, rows: Sequence[tuple[str, bytes, int]]) -> None:
        """Write a registry that holds these rows to a new file, unsynced. Any thread may do it."""
        database = sqlite3.connect(path, isolation_level=None)
        try:
            _lock(database, durable=False)
            database.executescript(_SCHEMA)
            _commit(database, rows, ())
        finally:
            database.close()

    async def close(self) -> None:
        self._closed = True
        if self._writing is not None:
            await asyncio.wait([self._writing])
        self._worker.shutdown()
        self._database.close()

    async def _write(self) -> None:
        """Carry out what is in the queue until it is empty.

        The registry owns this task: a cancelled caller does not keep the tree from showing what the file has.
        """
        while self._queue:
            transactions, self._queue = self._queue, []
            staged = Staging(self.tree)
            outcomes = []
            for transaction in transactions:
                self._zxid += 1
                outcomes.append(await _try(transaction.operations, staged, self._zxid))
            try:
                await self._save(staged.changes)
            except Exception as error:
                failure = f"the registry could not be written: {error}"
                if failure != self._failure:
                    log.error(failure)
                self._failure = failure
                for transaction in transactions:
                    _settle(transaction.done, RegistryUnavailable(failure))
                continue
            self._failure = ""
            for transaction, outcome in zip(transactions, outcomes, strict=True):
                if isinstance(outcome, Exception):
                    _settle(transaction.done, outcome)
                else:
                    self.tree.apply(outcome)
                    self.notify(outcome)
                    _settle(transaction.done, None)
        self._writing = None

    async def _save(self, changes: Sequence[Change]) -> None:
        last = dict(changes)
        rows = [(path, node.data, node.version) for path, node in last.items() if node and not node.ephemeral]
        gone = [path for path, node in last.items() if node is None and not self._was_ephemeral(path)]
        if rows or gone:
            await asyncio.get_running_loop().run_in_executor(self._worker, _commit, self._database, rows, gone)

    def _was_ephemeral(self, path: str) -> bool:
        node = self.tree.find(path)
        return node is not None and node.ephemeral


async def _try(operations: Sequence[Operation], staged: Staging, zxid: int) -> Sequence[Change] | Exception:
    """Stage a transaction on top of those before it. Returns its changes, or why it fails.

    Staged changes are invisible, so the loop may run in the middle of a large transaction.
    """
    own = Staging(staged, zxid)
    try:
        for count, operation in enumerate(operations, 1):
            own.stage(operation)
            if count % _STAGED_PER_TURN == 0:
                await asyncio.sleep(0)
    except (RegistryError, ValueError) as error:
        return error
    staged.absorb(own)
    return own.changes


def read_tree(path: str) -> Tree:
    """The tree that a file holds, every page of it checked; raises RegistryLocked or RegistryCorrupt."""
    try:
        database = sqlite3.connect(path, timeout=0, isolation_level=None)
    except sqlite3.Error as error:
        raise _opening_error(path, error) from error
    try:
        _lock(database, durable=False)
        damage = [text for (text,) in database.execute("PRAGMA integrity_check") if text != "ok"]
        if damage:
            raise RegistryCorrupt(f"{path}: {damage[0]}")
        if not _is_registry(database):
            raise RegistryCorrupt(f"{path} is not a registry, or is one of a newer version")
        return _load(path, database)
    except sqlite3.Error as error:
        raise _opening_error(path, error) from error
    finally:
        database.close()


def _settle(done: asyncio.Future[None], error: Exception | None) -> None:
    if done.done():  # its caller was cancelled
        return
    if error is None:
        done.set_result(None)
    else:
        done.set_exception(error)


def _lock(database: sqlite3.Connection, durable: bool) -> None:
    database.execute("PRAGMA locking_mode = EXCLUSIVE")
    database.execute("PRAGMA journal_mode = WAL")
    database.execute(f"PRAGMA synchronous = {'FULL' if durable else 'OFF'}")


def _is_empty(database: sqlite3.Connection) -> bool:
    return database.execute("SELECT 1 FROM sqlite_master").fetchone() is None


def _is_registry(database: sqlite3.Connection) -> bool:
    (application_id,) = database.execute("PRAGMA application_id").fetchone()
    (version,) = database.execute("PRAGMA user_version").fetchone()
    return (application_id, version) == (_APPLICATION_ID, _SCHEMA_VERSION)


def _load(file: str, database: sqlite3.Connection) -> Tree:
    tree = Tree()
    for path, data, version in database.execute("SELECT path, data, version FROM node"):
        if not (is_path(path) and isinstance(data, bytes) and isinstance(version, int)):
            raise RegistryCorrupt(f"{file}: the node {path!r} cannot be read")
        tree.put(path, Node(data, version))
    for path, _ in tree.nodes():
        if tree.find(parent_of(path)) is None:
            raise RegistryCorrupt(f"{file}: the node {path!r} has no parent")
    return tree


def _commit(database: sqlite3.Connection, rows: Sequence[tuple[str, bytes, int]], gone: Sequence[str]) -> None:
    database.execute("BEGIN IMMEDIATE")
    try:
        for start in range(0, len(gone), _ROWS_PER_STATEMENT):
            paths = gone[start : start + _ROWS_PER_STATEMENT]
            database.execute(f"DELETE FROM node WHERE path IN ({','.join('?' * len(paths))})", paths)
        for start in range(0, len(rows), _ROWS_PER_STATEMENT):
            some = rows[start : start + _ROWS_PER_STATEMENT]
            values = ",".join(["(?,?,?)"] * len(some))
            database.execute(f"INSERT OR REPLACE INTO node VALUES {values}", list(chain.from_iterable(some)))
        database.execute("COMMIT")
    except Exception:
        if database.in_transaction:
            database.execute("ROLLBACK")
        raise


def _sync_folder(path: str) -> None:
    """Make the new file's name durable."""
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _opening_error(path: str, error: sqlite3.Error) -> RegistryError:
    # The higher bits are not needed here. A text that is not UTF-8 has no code at all.
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return RegistryLocked(f"{path} is in use by another process")
    if code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
        return RegistryCorrupt(f"{path}: {error}")
    return RegistryUnavailable(f"{path}: {error}")
