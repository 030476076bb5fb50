"""The cluster as this broker was told that it looks."""
