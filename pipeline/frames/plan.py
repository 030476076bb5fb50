"""What Spark's plan says of a query: whether its rows come as the source had them, which is what `per-task` needs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from pyspark.sql import DataFrame

# Nodes that neither keep state nor move rows between tasks, nor change their order.
_IN_PLACE: Final = {
    "ArrowEvalPython",
    "BatchEvalPython",
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


def what_moves_rows(frame: DataFrame) -> str | None:
    """The first operation of the stream that keeps state or moves rows between tasks; None if there is none."""
    plan = frame._jdf.queryExecution().analyzed()
    return next((name for name in _streaming_nodes(plan) if name not in _IN_PLACE), None)


def _streaming_nodes(node: Any) -> Iterator[str]:
    if not node.isStreaming():
        return
    yield str(node.nodeName())
    children = node.children()
    for index in range(children.size()):
        yield from _streaming_nodes(children.apply(index))
