"""Share groups (KIP-932): the state of their partitions, kept by the share coordinator, and records for members."""
