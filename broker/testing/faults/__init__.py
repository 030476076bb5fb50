"""Faults: requests that are delayed, refused, cut off or answered wrongly, as a test asks for it."""
