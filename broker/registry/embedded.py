"""The registry of a broker on its own: a tree in memory that is kept in one SQLite file.

The tree in memory decides and answers; the file only makes it durable. Mutations wait in a queue. One task takes all
that have gathered, tries each against the tree, writes what they change in one transaction on a worker thread, and
only then lets the tree show it. So many at once share one fsync, and the loop never waits for the disk.

The file:
- One table, one row a node. Ephemeral nodes are in memory alone: they go with the process, as they should.
- A write-ahead log (journal_mode=WAL) synced at every commit (synchronous=FULL): a commit costs one fsync where a
  rollback journal costs three or more. A process or a machine that dies leaves a log whose last transaction is whole,
  or ignored.
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

from broker.registry.errors import RegistryCorrupt, RegistryError, RegistryLocked, RegistryUnavailable
from broker.registry.operations import Operation
from broker.registry.registry import Change, Node, Registry, WatchCallback
from broker.registry.tree import ROOT, Staging, Tree

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

# Each statement gives up the interpreter lock and has to win it back from the loop's thread, so rows go many at a time.
_ROWS_A_STATEMENT = 1000


_STAGED_A_TURN = 500


class _Transaction(NamedTuple):
    operations: Sequence[Operation]
    done: asyncio.Future[None]


class _Watch(NamedTuple):
    path: str
    below: str
    callback: WatchCallback


class EmbeddedRegistry(Registry):
    """See the module's description. Opened once, by `open`, before or on the loop that uses it."""

    def __init__(self, database: sqlite3.Connection, tree: Tree) -> None:
        self._database = database
        self._tree = tree
        self._watches: list[_Watch] = []
        self._queue: list[_Transaction] = []
        self._writing: asyncio.Task[None] | None = None
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="registry")
        self._closed = False

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
            return cls(database, _load(database))
        except sqlite3.Error as error:
            database.close()
            raise _opening_error(path, error) from error
        except RegistryError:
            database.close()
            raise

    def find(self, path: str) -> Node | None:
        return self._tree.find(path)

    def get(self, path: str) -> Node:
        return self._tree.get(path)

    def children(self, path: str) -> list[str]:
        return self._tree.children(path)

    def watch(self, path: str, callback: WatchCallback) -> Callable[[], None]:
        watch = _Watch(path, path if path == ROOT else path + "/", callback)
        self._watches.append(watch)

        def cancel() -> None:
            if watch in self._watches:
                self._watches.remove(watch)

        return cancel

    async def multi(self, operations: Sequence[Operation]) -> None:
        if self._closed:
            raise RegistryUnavailable("the registry is closed")
        done = asyncio.get_running_loop().create_future()
        self._queue.append(_Transaction(operations, done))
        if self._writing is None:
            self._writing = asyncio.create_task(self._write())
        await done

    @property
    def is_writing(self) -> bool:
        return self._writing is not None

    def rows(self) -> list[tuple[str, bytes, int]]:
        """All nodes that outlive this process, as they are now: path, data, version."""
        return [(path, node.data, node.version) for path, node in self._tree.nodes() if not node.ephemeral]

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

        This task is nobody's but the registry's: a caller that is cancelled does not keep the tree from showing what
        the file has.
        """
        while self._queue:
            transactions, self._queue = self._queue, []
            staged = Staging(self._tree)
            outcomes = [await _try(transaction.operations, staged) for transaction in transactions]
            try:
                await self._save(staged.changes)
            except Exception as error:
                for transaction in transactions:
                    _settle(transaction.done, RegistryUnavailable(str(error)))
                continue
            for transaction, outcome in zip(transactions, outcomes, strict=True):
                if isinstance(outcome, Exception):
                    _settle(transaction.done, outcome)
                else:
                    self._tree.apply(outcome)
                    self._notify(outcome)
                    _settle(transaction.done, None)
        self._writing = None

    async def _save(self, changes: Sequence[Change]) -> None:
        last = dict(changes)
        rows = [(path, node.data, node.version) for path, node in last.items() if node and not node.ephemeral]
        gone = [path for path, node in last.items() if node is None]
        if rows or gone:
            await asyncio.get_running_loop().run_in_executor(self._worker, _commit, self._database, rows, gone)

    def _notify(self, changes: Sequence[Change]) -> None:
        for watch in tuple(self._watches):
            seen = [change for change in changes if change.path == watch.path or change.path.startswith(watch.below)]
            if not seen:
                continue
            try:
                watch.callback(seen)
            except Exception as error:
                context = {"message": f"a watch of {watch.path} failed", "exception": error}
                asyncio.get_running_loop().call_exception_handler(context)


async def _try(operations: Sequence[Operation], staged: Staging) -> Sequence[Change] | Exception:
    """Stage a transaction on top of those before it; its changes, or why it cannot be.

    Nobody sees what is staged, so that the loop may have its turn in the middle of a large one.
    """
    own = Staging(staged)
    try:
        for count, operation in enumerate(operations, 1):
            own.stage(operation)
            if count % _STAGED_A_TURN == 0:
                await asyncio.sleep(0)
    except (RegistryError, ValueError) as error:
        return error
    staged.absorb(own)
    return own.changes


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


def _load(database: sqlite3.Connection) -> Tree:
    tree = Tree()
    for path, data, version in database.execute("SELECT path, data, version FROM node"):
        tree.put(path, Node(data, version))
    return tree


def _commit(database: sqlite3.Connection, rows: Sequence[tuple[str, bytes, int]], gone: Sequence[str]) -> None:
    database.execute("BEGIN IMMEDIATE")
    try:
        for start in range(0, len(gone), _ROWS_A_STATEMENT):
            paths = gone[start : start + _ROWS_A_STATEMENT]
            database.execute(f"DELETE FROM node WHERE path IN ({','.join('?' * len(paths))})", paths)
        for start in range(0, len(rows), _ROWS_A_STATEMENT):
            some = rows[start : start + _ROWS_A_STATEMENT]
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
    code = error.sqlite_errorcode & 0xFF  # the higher bits say more than is needed here
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return RegistryLocked(f"{path} is in use by another process")
    if code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
        return RegistryCorrupt(f"{path}: {error}")
    return RegistryUnavailable(f"{path}: {error}")
