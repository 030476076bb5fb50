"""The version. The package metadata takes it from here, because looking it up there would slow down each start."""

from typing import Final

VERSION: Final = "0.1.0"
