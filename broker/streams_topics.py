"""The topics that streams applications need for themselves: created in the background when a heartbeat misses them.

A member is not told at once whether that succeeds: its next heartbeat finds the topics, or hears why they could not be
created. Topics that could not are tried again after a while.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping, Sequence
from typing import Any, Final

import structlog

from barnabas.broker.controller.create_topics import USE_DEFAULT, NewTopic
from barnabas.broker.controller.results import TopicResult
from barnabas.broker.group.streams.configuration import InternalTopic

log = structlog.get_logger()

Create = Callable[[Sequence[NewTopic]], Awaitable[Sequence[TopicResult]]]

_MOST_ERRORS: Final = 1000


class StreamsTopics:
    def __init__(
        self, create: Create, start: Callable[[Coroutine[Any, Any, None]], None], now_ms: Callable[[], int]
    ) -> None:
        """`create` gives the topics that failed; `start` runs work in the background."""
        self._create = create
        self._start = start
        self._now_ms = now_ms
        self._in_flight: set[str] = set()
        self._errors: dict[str, tuple[int, str]] = {}  # until when, and what went wrong

    def create(self, topics: Collection[InternalTopic], kept_ms: int) -> None:
        """Create what is not being created. An error is remembered for `kept_ms`; so long, it is not tried again."""
        failed = self.errors([topic.name for topic in topics])
        wanted = [topic for topic in topics if topic.name not in failed and topic.name not in self._in_flight]
        if wanted:
            self._in_flight.update(topic.name for topic in wanted)
            self._start(self._make(wanted, kept_ms))

    def errors(self, names: Collection[str]) -> Mapping[str, str]:
        """What went wrong with these topics a short while ago."""
        now_ms = self._now_ms()
        found = ((name, self._errors.get(name)) for name in names)
        return {name: error[1] for name, error in found if error is not None and error[0] > now_ms}

    async def _make(self, topics: Sequence[InternalTopic], kept_ms: int) -> None:
        try:
            failed = await self._create(list(map(_new_topic, topics)))
        finally:
            self._in_flight.difference_update(topic.name for topic in topics)
        until_ms = self._now_ms() + kept_ms
        for result in failed:
            text = result.error_message or result.error_code.name
            log.warning("topic of a streams application could not be created", topic=result.name, error=text)
            self._errors.pop(result.name or "", None)
            self._errors[result.name or ""] = until_ms, text
        while len(self._errors) > _MOST_ERRORS:
            del self._errors[next(iter(self._errors))]


def _new_topic(topic: InternalTopic) -> NewTopic:
    return NewTopic(topic.name, topic.partitions, topic.replication_factor or USE_DEFAULT, configs=topic.configs)
