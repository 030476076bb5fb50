"""How far a pipeline has come, without Spark: from its checkpoint's files, and from its markers on the broker."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from barnabas.pipeline.checkpoint import Checkpoint, Identity
from barnabas.pipeline.cluster import Cluster, Offsets
from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.model import Pipeline


@dataclass(frozen=True)
class QueryStatus:
    """`reached` has the offsets after the last finished batch, `marker` those that exactly-once sinks committed."""

    name: str
    batch: int | None
    reached: Offsets
    marker: Offsets
    ends: Offsets

    @property
    def lag(self) -> int:
        return sum(
            max(0, end - self.reached.get(topic, {}).get(partition, 0))
            for topic, partitions in self.ends.items()
            for partition, end in partitions.items()
        )


def status(pipeline: Pipeline) -> list[QueryStatus]:
    checkpoint = Checkpoint(pipeline.checkpoint)
    if checkpoint.local is None:
        raise PipelineError(
            f"the checkpoint {pipeline.checkpoint} is not among this machine's files; `barnabas pipeline explain` "
            "reads it through Spark"
        )
    identity = checkpoint.identity()
    if identity is None:
        raise PipelineError(
            f"the pipeline {pipeline.name!r} has not run yet: there is no checkpoint in {checkpoint.location}"
        )
    cluster = Cluster(pipeline.bootstrap, pipeline.kafka)
    return statuses(checkpoint.local, identity, cluster, cluster.topics())


def statuses(folder: Path, identity: Identity, cluster: Cluster, topics: dict[str, int]) -> list[QueryStatus]:
    found = []
    for each in sorted(folder.glob("*/metadata")):
        name = each.parent.name
        batch = last_batch(each.parent / "commits")
        reached = offsets_of(each.parent / "offsets" / str(batch)) if batch is not None else {}
        known = reached or offsets_of(each.parent / "offsets" / "0")
        ends = cluster.ends({topic: topics[topic] for topic in known if topic in topics})
        found.append(QueryStatus(name, batch, reached, cluster.committed(identity.query(name)), ends))
    return found


def last_batch(folder: Path) -> int | None:
    """The number of the newest file of one of Spark's logs."""
    numbers = [int(each.name) for each in folder.iterdir() if each.name.isdigit()] if folder.is_dir() else []
    return max(numbers, default=None)


def offsets_of(file: Path) -> Offsets:
    """The offsets in a file of Spark's offset log: a version, metadata, then one line of JSON per source."""
    try:
        lines = file.read_text().splitlines()
    except OSError:
        return {}
    found: Offsets = {}
    for line in lines[2:]:
        try:
            topics = json.loads(line)
        except ValueError:
            continue
        for topic, partitions in topics.items() if isinstance(topics, dict) else ():
            if isinstance(partitions, dict):
                found.setdefault(topic, {}).update({int(number): offset for number, offset in partitions.items()})
    return found


def show_status(pipeline: Pipeline, *, as_json: bool) -> int:
    found = status(pipeline)
    if as_json:
        print(json.dumps([{**asdict(each), "lag": each.lag} for each in found], indent=2))
        return 0
    Console().print(status_table(pipeline.name, found))
    return 0


def status_table(name: str, found: list[QueryStatus]) -> Table:
    table = Table(title=f"pipeline {name}", title_justify="left")
    for column in ("query", "last batch", "topic", "partition", "reached", "end", "lag"):
        table.add_column(column, justify="left" if column in ("query", "topic") else "right")
    for each in found:
        batch = "-" if each.batch is None else str(each.batch)
        for topic, partitions in each.ends.items() or ():
            for partition, end in sorted(partitions.items()):
                reached = each.reached.get(topic, {}).get(partition)
                lag = end - (reached or 0)
                table.add_row(each.name, batch, topic, str(partition), str(reached or 0), str(end), str(max(0, lag)))
        if not each.ends:
            table.add_row(each.name, batch, "-", "-", "-", "-", "-")
    return table
