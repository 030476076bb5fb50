"""What a pipeline would do: how each sink delivers, Spark's plan for it, the topics and how far behind it is."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console

from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.failures import explained
from barnabas.pipeline.frames.plan import spark_plan
from barnabas.pipeline.frames.views import build
from barnabas.pipeline.model import Pipeline
from barnabas.pipeline.queries import Queries
from barnabas.pipeline.running import Ready, prepared
from barnabas.pipeline.status import status_table, statuses


def show_plan(pipeline: Pipeline, master: str | None = None) -> int:
    console = Console()
    with prepared(pipeline, master=master, only_look=True) as ready:
        try:
            for line in description(ready):
                console.print(line, highlight=False, markup=False, soft_wrap=True)
            local = ready.checkpoint.local
            if local is not None and ready.checkpoint.identity() is not None:
                found = statuses(local, ready.identity, ready.cluster, ready.cluster.topics())
                console.print(status_table(pipeline.name, found))
        except PipelineError:
            raise
        except Exception as error:
            raise explained(error, pipeline, ready.log) from error
    return 0


def description(ready: Ready) -> Iterator[str]:
    pipeline = ready.pipeline
    yield f"pipeline {pipeline.name} on {ready.master}, broker {pipeline.bootstrap}, checkpoint {pipeline.checkpoint}"
    there = ready.cluster.topics()
    ends = ready.cluster.ends({topic: partitions for topic, partitions in ready.topics.items() if topic in there})
    for topic, partitions in ready.topics.items():
        # Some offsets may belong to transaction markers or to deleted records.
        records = f"at most {sum(ends[topic].values())} records up to now" if topic in ends else "not created yet"
        yield f"  topic {topic}: {partitions} partitions, {records}"
    views = build(ready.session, pipeline, ready.identity.schemas)
    for name, frame in views.frames.items():
        columns = (f"{field.name} {field.dataType.simpleString()}" for field in frame.schema.fields)
        yield f"  view {name}: {', '.join(columns)}"
    maker = Queries(pipeline, ready.identity, ready.checkpoint, Console(), lambda name, rows: None, ready.master)
    for query in maker.make(views):
        yield f"\n{query.name}: {query.view} {query.how}; mode {query.mode}"
        yield spark_plan(query.frame)
