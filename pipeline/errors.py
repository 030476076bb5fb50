"""What can go wrong with a pipeline, told to the person who runs it.

The text of a PipelineError says what to do about it. Java's own words about the matter, if there are any, are in the
log file that the text names.
"""


class PipelineError(Exception):
    pass


class JavaMissing(PipelineError):
    """There is no Java on this machine that Spark runs on, and none could be brought."""


class ConnectorMissing(PipelineError):
    """Spark's Kafka connector is not here and could not be fetched."""


class SessionFailed(PipelineError):
    """Spark did not start."""
