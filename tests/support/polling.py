"""For changes that nothing announces."""

import time


def pause() -> None:
    """The pause between two polls: it leaves the core to the process that is waited for."""
    time.sleep(0.005)
