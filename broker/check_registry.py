"""Checks that the registry of a data directory is valid, and agrees with the folders beside it.

Nothing is changed. The caller makes sure that no broker uses the directory meanwhile.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final, NamedTuple

from barnabas.broker.config.topic_config import problem_with
from barnabas.broker.controller import znodes
from barnabas.broker.controller.znodes import MalformedNode
from barnabas.broker.registry.embedded import read_tree
from barnabas.broker.registry.errors import RegistryError
from barnabas.broker.registry.tree import Tree
from barnabas.broker.security import acl_nodes, token_nodes
from barnabas.protocol.topic_partition import TopicPartition
from barnabas.storage.check import Problem
from barnabas.storage.errors import CorruptFile
from barnabas.storage.partition_folder import partition_of_folder
from barnabas.storage.properties import CLEAN_SHUTDOWN, read_topic_id

REGISTRY_FILE: Final = "registry.db"


class KnownTopic(NamedTuple):
    """What the registry says about a topic, as far as it concerns its files."""

    topic_id: bytes
    partitions: int
    compacted: bool


class CheckedRegistry(NamedTuple):
    problems: list[Problem]
    # None if there is no registry, or none that can be read.
    topics: dict[str, KnownTopic] | None


def check_registry(folder: str) -> CheckedRegistry:
    path = os.path.join(folder, REGISTRY_FILE)
    if not os.path.exists(path):  # as in a data directory of Apache Kafka
        return CheckedRegistry([], None)
    try:
        check = _Check(read_tree(path))
    except RegistryError as error:
        return CheckedRegistry([Problem(path, None, str(error).removeprefix(f"{path}: "))], None)
    problems = [Problem(path, None, message) for message in check.run()]
    stopped_in_order = os.path.exists(os.path.join(folder, CLEAN_SHUTDOWN))
    if stopped_in_order and not check.unreadable:  # after a crash, the next start may have to create or delete some
        problems += _check_folders(folder, check.topics)
    return CheckedRegistry(problems, check.topics)


class _Check:
    """Reads every node that a broker reads."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self.topics: dict[str, KnownTopic] = {}
        self.unreadable: set[str] = set()  # topics

    def run(self) -> Iterator[str]:
        configs = self._children(znodes.TOPIC_CONFIGS)
        for topic in self._children(znodes.TOPICS):
            yield from self._check_topic(topic)
        for topic in configs:
            if topic not in self.topics and topic not in self.unreadable:
                yield f"{znodes.topic_config_path(topic)}: settings of a topic that does not exist"
        for name in self._children(znodes.BROKER_CONFIGS):
            path = f"{znodes.BROKER_CONFIGS}/{name}"
            try:
                znodes.read_configs(path, self._tree.get(path))
            except MalformedNode as error:
                yield str(error)
        for path, read in (
            (znodes.CLUSTER_ID, znodes.read_cluster_id),
            (znodes.CONTROLLER_EPOCH, znodes.read_controller_epoch),
            (znodes.PRODUCER_ID_BLOCK, znodes.read_producer_id_block_end),
        ):
            node = self._tree.find(path)
            try:
                if node is not None:
                    read(node)
            except MalformedNode as error:
                yield str(error)

        yield from self._check_acls()
        for name in self._children(token_nodes.TOKENS):
            path = token_nodes.path_of(name)
            try:
                token_nodes.read(path, self._tree.get(path))
            except MalformedNode as error:
                yield str(error)

    def _check_acls(self) -> Iterator[str]:
        waiting = [acl_nodes.LITERAL, acl_nodes.PREFIXED]
        while waiting:
            path = waiting.pop()
            waiting += (f"{path}/{name}" for name in self._children(path))
            node = self._tree.find(path)
            try:
                if node is not None and acl_nodes.pattern_at(path) is not None:
                    acl_nodes.read_entries(path, node)
            except MalformedNode as error:
                yield str(error)

    def _check_topic(self, topic: str) -> Iterator[str]:
        path = znodes.topic_config_path(topic)
        try:
            assignment = znodes.read_topic(topic, self._tree.get(znodes.topic_path(topic)))
            settings = self._tree.find(path)
            configs = {} if settings is None else znodes.read_configs(path, settings)
            for index in range(len(assignment.replicas)):
                state = self._tree.find(znodes.state_path(topic, index))
                if state is None:
                    yield f"{znodes.state_path(topic, index)}: is missing"
                else:
                    znodes.read_state(topic, index, state)
        except MalformedNode as error:
            self.unreadable.add(topic)
            yield str(error)
            return
        for name, text in configs.items():
            problem = problem_with(name, text)
            if problem is not None:
                yield f"{path}: {problem}"
        compacted = "compact" in configs.get("cleanup.policy", "")
        self.topics[topic] = KnownTopic(assignment.topic_id, len(assignment.replicas), compacted)

    def _children(self, path: str) -> list[str]:
        return self._tree.children(path) if self._tree.find(path) else []


def _check_folders(folder: str, topics: dict[str, KnownTopic]) -> list[Problem]:
    problems = []
    found = set()
    for name in sorted(os.listdir(folder)):
        partition = partition_of_folder(name)
        path = os.path.join(folder, name)
        if partition is None or not os.path.isdir(path):
            continue
        found.add(partition)
        if not _belongs(path, partition, topics.get(partition.topic)):
            message = "no topic of the registry has this partition; the next start sets it aside"
            problems.append(Problem(path, None, message))
    for topic, known in topics.items():
        for index in range(known.partitions):
            if TopicPartition(topic, index) not in found:
                missing = os.path.join(folder, f"{topic}-{index}")
                problems.append(Problem(missing, None, "the registry has this partition, and its folder is missing"))
    return problems


def _belongs(path: str, partition: TopicPartition, known: KnownTopic | None) -> bool:
    if known is None or partition.partition >= known.partitions:
        return False
    try:
        topic_id = read_topic_id(path)
    except CorruptFile:  # which is another problem
        return True
    return topic_id is None or topic_id.bytes == known.topic_id
