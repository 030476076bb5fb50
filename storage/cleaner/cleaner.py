"""The cleaner: chooses the log that needs it most, and compacts it step by step.

It belongs to the thread of the logs. What takes long it hands out, to be done elsewhere before it goes on:

    cleaning = cleaner.choose(now_ms)
    for step in cleaning.steps():
        ... run step() on another thread, and wait for it ...

Steps raise nothing. Whoever wants no more of a cleaning calls `stop` or just leaves its steps: what has been swapped in
stays, the rest is forgotten, and of every key the log still has the last record.
"""

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

import structlog

from protocol.records.errors import RecordsError
from storage.cleaner.cleanable import CleanableSection, cleanable_section
from storage.cleaner.plan import DEDUPE_BUFFER_SIZE, plan_cleaning
from storage.cleaner.rewrite import CleanedSegment, CleaningStats
from storage.cleaner.work import StartWork, in_child
from storage.errors import CleaningAborted, CorruptFile, LogFailure
from storage.file_names import CLEANED, offset_file
from storage.filesystem import FileSystem
from storage.log import Log
from storage.segment import Segment
from storage.topic_partition import TopicPartition

logger = structlog.get_logger(__name__)

# A log that could not be compacted (the disk was full, say) is not tried again at once.
RETRY_BACKOFF_MS: Final = 15_000

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True)
class CleanerConfig:
    """Kafka's settings of these names, with `log.cleaner` before them."""

    dedupe_buffer_size: int = DEDUPE_BUFFER_SIZE
    io_max_bytes_per_second: float = math.inf


class Cleaner:
    def __init__(
        self,
        logs: Mapping[TopicPartition, Log],
        config: CleanerConfig | None = None,
        file_system: FileSystem | None = None,
        start_work: StartWork = in_child,
    ) -> None:
        """`logs` are looked at anew whenever one is chosen."""
        self.config = config or CleanerConfig()
        self.file_system = file_system or FileSystem()
        self.start_work = start_work
        # Logs in which something is damaged. Until a restart they are left alone.
        self.uncleanable: set[Log] = set()
        # When logs were begun with that could not be finished.
        self.given_up_ms: dict[Log, int] = {}
        self._logs = logs

    def choose(self, now_ms: int) -> "Cleaning | None":
        """The cleaning of the log that is dirtiest among those that are due."""
        due = []
        self.given_up_ms = {log: at for log, at in self.given_up_ms.items() if now_ms - at < RETRY_BACKOFF_MS}
        for log in self._logs.values():
            left_alone = log.failed or log in self.uncleanable or log in self.given_up_ms
            if log.config.compact and not left_alone:
                section = cleanable_section(log, now_ms)
                if section.is_due(log.config.min_cleanable_dirty_ratio):
                    due.append((log, section))
        if not due:
            return None
        log, section = max(due, key=lambda candidate: candidate[1].dirty_ratio)
        return Cleaning(self, log, section, now_ms)


class Step(Generic[T_co]):
    """Something to be done on another thread. How it ended is known to the cleaning."""

    def __init__(self, work: Callable[[], T_co]) -> None:
        self._work = work
        self._result: T_co
        self._error: BaseException | None = CleaningAborted("a step was left out")

    def __call__(self) -> None:
        try:
            self._result = self._work()
            self._error = None
        except BaseException as error:
            self._error = error

    @property
    def succeeded(self) -> bool:
        return self._error is None

    @property
    def result(self) -> T_co:
        if self._error is not None:
            raise self._error
        return self._result


class Cleaning:
    """One log on its way to being compacted."""

    def __init__(self, cleaner: Cleaner, log: Log, section: CleanableSection, now_ms: int) -> None:
        self.log = log
        # What has been done, once it is.
        self.stats: CleaningStats | None = None
        self._cleaner = cleaner
        self._now_ms = now_ms
        config = cleaner.config
        plan = plan_cleaning(log, section, now_ms, config.dedupe_buffer_size)
        self._work = cleaner.start_work(plan, config.io_max_bytes_per_second, cleaner.file_system)
        self._segments = {segment.base_offset: segment for segment in log.segments}
        self._truncations = log.truncations

    def stop(self) -> None:
        """Let the step under way end soon, and be the last. May be called on any thread."""
        self._work.stop()

    def steps(self) -> Iterator[Step[object]]:
        try:
            yield from self._steps()
        except CleaningAborted as error:
            logger.info("compaction given up", partition=str(self.log.topic_partition), reason=str(error))
        except (LogFailure, OSError) as error:
            logger.error("compaction failed", partition=str(self.log.topic_partition), error=str(error))
        except (RecordsError, CorruptFile) as error:
            logger.error("log cannot be compacted", partition=str(self.log.topic_partition), error=str(error))
            self._cleaner.uncleanable.add(self.log)
        finally:
            self._work.stop()
            if self.stats is None:
                self._cleaner.given_up_ms[self.log] = self._now_ms

    def _steps(self) -> Iterator[Step[object]]:
        while True:
            step = Step(self._work.next)
            yield step
            cleaned = step.result
            if isinstance(cleaned, CleaningStats):
                break
            yield from self._swap_in(cleaned)
        self._check_log()
        self.log.first_dirty_offset = cleaned.end_offset
        self.stats = cleaned

    def _swap_in(self, cleaned: CleanedSegment) -> Iterator[Step[object]]:
        log = self.log
        try:
            old = self._check_log(cleaned)
            swap = log.start_swap(cleaned.base_offset, cleaned.sizes, old)
        except BaseException:
            self._remove(cleaned)
            raise
        try:
            yield Step(swap.sync)
            if swap.cancelled:
                raise CleaningAborted("records were cut off or deleted meanwhile")
        except BaseException:
            if not swap.cancelled:
                log.cancel_swap()
            raise
        deletion = Step(log.replace_segments(swap).run)
        yield deletion
        # Otherwise the old segments may come back after a crash, and the new one keeps the name that forbids that.
        if deletion.succeeded:
            log.finish_swap(swap)

    def _check_log(self, cleaned: CleanedSegment | None = None) -> list[Segment]:
        """The segments that a compacted one is to replace. They must be there still, and the same."""
        log = self.log
        if not log.in_use or log.truncations != self._truncations:
            raise CleaningAborted("the log was deleted, or records were cut off from it")
        old = [self._segments[base_offset] for base_offset in cleaned.replaces] if cleaned else []
        if any(log.segments.floor(segment.base_offset) is not segment for segment in old):
            raise CleaningAborted("segments were deleted")
        return old

    def _remove(self, cleaned: CleanedSegment) -> None:
        for suffix in cleaned.sizes:
            with contextlib.suppress(OSError):
                self._cleaner.file_system.unlink(offset_file(self.log.folder, cleaned.base_offset, suffix + CLEANED))
