"""The cleaner: chooses the log that needs it most, and compacts it step by step.

It belongs to the thread of the logs. Slow steps are handed out, to be run elsewhere before it continues:

    cleaning = cleaner.choose(now_ms)
    for step in cleaning.steps():
        ... run step() on another thread, and wait for it ...

Steps raise nothing. To abandon a cleaning, call `stop` or do not run its remaining steps. Segments that were swapped in
stay, the rest is dropped, and the log still has the last record of every key.
"""

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

import structlog

from barnabas.protocol.topic_partition import TopicPartition
from barnabas.storage.cleaner.cleanable import CleanableSection, cleanable_section
from barnabas.storage.cleaner.plan import DEDUPE_BUFFER_SIZE, plan_cleaning
from barnabas.storage.cleaner.rewrite import CleanedSegment, CleaningStats
from barnabas.storage.cleaner.work import StartWork, in_child
from barnabas.storage.errors import CleaningAborted, LogFailure
from barnabas.storage.file_names import CLEANED, offset_file
from barnabas.storage.filesystem import FileSystem
from barnabas.storage.log import Log
from barnabas.storage.segment import Segment

logger = structlog.get_logger(__name__)

# How long to wait before retrying a log that could not be compacted, for example because the disk was full.
RETRY_BACKOFF_MS: Final = 15_000

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True)
class CleanerConfig:
    """Kafka's settings of these names, prefixed with `log.cleaner`."""

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
        """`logs` is read again each time a log is chosen."""
        self.config = config or CleanerConfig()
        self.file_system = file_system or FileSystem()
        self.start_work = start_work
        # Logs that cannot be compacted, usually because of damage, with the reason. They are skipped until a restart;
        # the others are still compacted.
        self.uncleanable: dict[Log, Exception] = {}
        # When cleanings began that could not be finished.
        self.given_up_ms: dict[Log, int] = {}
        self._logs = logs

    def choose(self, now_ms: int) -> "Cleaning | None":
        """A cleaning of the dirtiest log that is due."""
        due = []
        self.given_up_ms = {log: at for log, at in self.given_up_ms.items() if 0 <= now_ms - at < RETRY_BACKOFF_MS}
        self.uncleanable = {log: error for log, error in self.uncleanable.items() if log.in_use}
        for log in self._logs.values():
            left_alone = log.failed or log in self.uncleanable or log in self.given_up_ms
            if log.config.compact and not left_alone:
                try:
                    section = cleanable_section(log, now_ms)
                except Exception as error:
                    self.give_up(log, error, now_ms)
                    continue
                if section.is_due(log.config.min_cleanable_dirty_ratio):
                    due.append((log, section))
        for log, section in sorted(due, key=lambda candidate: -candidate[1].dirty_ratio):
            try:
                return Cleaning(self, log, section, now_ms)
            except Exception as error:
                self.give_up(log, error, now_ms)
        return None

    def give_up(self, log: Log, error: Exception, now_ms: int) -> None:
        """Skip a log: for a while if the disk failed or the work was aborted, otherwise for good."""
        partition = str(log.topic_partition)
        if isinstance(error, CleaningAborted):
            logger.info("compaction aborted", partition=partition, reason=str(error))
        elif isinstance(error, LogFailure | OSError):
            logger.error("compaction failed", partition=partition, error=str(error))
        else:
            self.uncleanable[log] = error
        self.given_up_ms[log] = now_ms


class Step(Generic[T_co]):
    """Work for another thread. It stores its result or its error for the cleaning."""

    def __init__(self, work: Callable[[], T_co]) -> None:
        self._work = work
        self._result: T_co
        self._error: BaseException | None = CleaningAborted("a step was skipped")

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
    """The compaction of one log."""

    def __init__(self, cleaner: Cleaner, log: Log, section: CleanableSection, now_ms: int) -> None:
        self.log = log
        # Set when the cleaning is complete.
        self.stats: CleaningStats | None = None
        self._cleaner = cleaner
        self._now_ms = now_ms
        config = cleaner.config
        plan = plan_cleaning(log, section, now_ms, config.dedupe_buffer_size)
        self._work = cleaner.start_work(plan, config.io_max_bytes_per_second, cleaner.file_system)
        self._segments = {segment.base_offset: segment for segment in log.segments}
        self._truncations = log.truncations

    def stop(self) -> None:
        """Make the current step end soon, as the last one. May be called on any thread."""
        self._work.stop()

    def steps(self) -> Iterator[Step[object]]:
        try:
            yield from self._steps()
        except Exception as error:
            self._cleaner.give_up(self.log, error, self._now_ms)
        finally:
            self._work.stop()

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
                raise CleaningAborted("records were truncated or deleted meanwhile")
        except BaseException:
            if not swap.cancelled:
                log.cancel_swap()
            raise
        deletion = Step(log.replace_segments(swap).run)
        yield deletion
        # Otherwise the old segments might come back after a crash. While the new one is named `.swap`, they cannot.
        if deletion.succeeded:
            log.finish_swap(swap)

    def _check_log(self, cleaned: CleanedSegment | None = None) -> list[Segment]:
        """The segments that a compacted one will replace. They must still exist and be unchanged."""
        log = self.log
        if not log.in_use or log.truncations != self._truncations:
            raise CleaningAborted("the log was deleted or truncated")
        old = [self._segments[base_offset] for base_offset in cleaned.replaces] if cleaned else []
        if any(log.segments.floor(segment.base_offset) is not segment for segment in old):
            raise CleaningAborted("segments were deleted")
        return old

    def _remove(self, cleaned: CleanedSegment) -> None:
        for suffix in cleaned.sizes:
            with contextlib.suppress(OSError):
                self._cleaner.file_system.unlink(offset_file(self.log.folder, cleaned.base_offset, suffix + CLEANED))
