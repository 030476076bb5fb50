"""What every test may rely on."""

import os
import signal

import pytest

from tests.support import apache_kafka

# A suite that is started in the background ignores SIGINT, and so would every process that it starts.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Skip the tests marked `java` where Java is missing. In CI (CI=true) they run, and fail with that same word."""
    items = [item for item in session.items if item.get_closest_marker("java")]
    if not items or session.config.option.collectonly:
        return
    reason = apache_kafka.unavailable()
    if reason and os.environ.get("CI") != "true":
        for item in items:
            item.add_marker(pytest.mark.skip(reason=reason))
