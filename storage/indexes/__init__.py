"""The index files beside a segment: offsets to positions, times to offsets, and aborted transactions."""
