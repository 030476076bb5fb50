"""Spark's plan of a query, as text, and read: do its rows arrive as the source had them, as `per-task` requires?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from pyspark.sql import DataFrame

# Nodes that neither keep state nor move rows between tasks, nor change their order.
_IN_PLACE: Final = {
    "ArrowEvalPython",
    "BatchEvalPython",
    "CollectMetrics",
    "EventTimeWatermark",
    "Filter",
    "Generate",
    "LogicalRDD",
    "MapInArrow",
    "MapInPandas",
    "PythonMapInArrow",
    "Project",
    "StreamingRelation",
    "StreamingRelationV2",
    "SubqueryAlias",
    "Union",
    "UnresolvedHint",
    "View",
    "WithCTE",
    "CTERelationDef",
    "CTERelationRef",
}
_RELATIONS: Final = {"LogicalRDD", "StreamingRelation", "StreamingRelationV2"}


def spark_plan(frame: DataFrame) -> str:
    """What DataFrame.explain prints."""
    jvm = frame.sparkSession.sparkContext._jvm
    assert jvm is not None
    return str(jvm.PythonSQLUtils.explainString(frame._jdf.queryExecution(), "simple")).strip()


def why_not_per_task(frame: DataFrame) -> str | None:
    """Why the rows of a stream cannot be written task by task; None if they can.

    The marker of a source partition says how far its output has come, so all of a batch's rows from that partition
    have to be in one task, in their order: two tasks would each take the other's marker for their own.
    """
    plan = frame._jdf.queryExecution().analyzed()
    read: set[str] = set()
    repeated: set[int] = set()
    for node in _streaming_nodes(plan):
        name = str(node.nodeName())
        if name not in _IN_PLACE:
            return f"the query has an operation ({name}) that keeps state or moves rows between tasks"
        if node.subqueries().nonEmpty():
            return "the query has a subquery, which Spark may turn into a join that moves rows between tasks"
        if name == "CTERelationRef":
            if node.cteId() in repeated:
                return "the query reads a part of its WITH twice, in two tasks"
            repeated.add(node.cteId())
        elif name in _RELATIONS:
            topics = _topics(node)
            if read and (topics is None or "" in read or not read.isdisjoint(topics)):
                return "the query reads a topic twice (as a UNION of a view with itself does), in two tasks"
            read.update({""} if topics is None else topics)
    return None


def _topics(relation: Any) -> set[str] | None:
    """The topics that a source reads; None if only a pattern is known."""
    options = relation.extraOptions() if relation.nodeName() == "StreamingRelationV2" else None
    named = options.get("subscribe") if options is not None else None
    return None if named is None else set(str(named).split(","))


def _streaming_nodes(node: Any) -> Iterator[Any]:
    if not node.isStreaming():
        return
    yield node
    children = node.children()
    for index in range(children.size()):
        yield from _streaming_nodes(children.apply(index))
