"""The journal: every request and its answer, decoded, with what they changed."""
