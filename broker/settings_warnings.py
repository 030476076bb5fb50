"""Warnings about settings that were altered at run-time: each setting without effect is reported once."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import starmap

import structlog

from barnabas.broker.config import BrokerConfig, TopicConfig
from barnabas.broker.config.topic_config import problem_with, without_effect
from barnabas.broker.metadata.cache import MetadataCache

log = structlog.get_logger()


class SettingsWarnings:
    def __init__(self, config: BrokerConfig) -> None:
        self._config = config
        self._reported = set(config.without_effect)  # `config.warnings` has those of the file

    def about_broker(self, problems: Iterable[str]) -> None:
        """`problems`: what is wrong with settings that are therefore left out."""
        for problem in problems:
            log.warning("an altered setting is left out", problem=problem)
        self._report(self._config.without_effect)

    def about_topics(self, cluster: MetadataCache, names: Iterable[str]) -> None:
        for name in names:
            image = cluster.topic(name)
            if image is not None and image.configs:
                for problem in filter(None, starmap(problem_with, image.configs.items())):
                    log.warning("a topic's setting is left out", topic=name, problem=problem)
                usable = TopicConfig.stored(image.configs, self._config).overrides
                self._report(without_effect(usable), topic=name)

    def _report(self, settings: Iterable[str], **whose: str) -> None:
        new = [name for name in settings if name not in self._reported]
        if new:
            self._reported.update(new)
            log.warning("these settings have no effect in Barnabas", settings=", ".join(new), **whose)
