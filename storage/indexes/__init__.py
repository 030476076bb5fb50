"""The index files of a segment: offsets to positions, times to offsets, and aborted transactions."""
