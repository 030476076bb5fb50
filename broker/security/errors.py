"""What is wrong with the security settings, or with what they name."""

from __future__ import annotations


class SecurityError(Exception):
    """A sentence for whoever wrote the settings. It never holds a secret."""
