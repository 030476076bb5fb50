"""What can go wrong with a pipeline, in words for the person who runs it.

The text of a PipelineError says what to do about it. Java's own output, if any, is in the log file that
the text names.
"""


class PipelineError(Exception):
    pass


class JavaMissing(PipelineError):
    """This machine has no Java that Spark runs on, and none could be provided."""


class ConnectorMissing(PipelineError):
    """Spark's Kafka connector is missing and could not be downloaded."""


class SessionFailed(PipelineError):
    """Spark did not start."""
