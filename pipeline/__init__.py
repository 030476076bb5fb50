"""Pipelines on Spark, from topics to topics and files. They use the broker over the wire only: any Kafka will do."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from barnabas.pipeline.batch import read_topic
    from barnabas.pipeline.session import log_file, register, spark_session

__all__ = ["log_file", "read_topic", "register", "spark_session"]


def __getattr__(name: str) -> Any:
    """Importing Spark takes most of a second. The check of a file does not wait for it, nor does a run's first line."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from barnabas.pipeline import batch, session

    return getattr(batch if name == "read_topic" else session, name)
