"""For what nobody announces."""

import time


def pause() -> None:
    """Between one question and the next: it leaves the core to whoever is waited for."""
    time.sleep(0.005)
