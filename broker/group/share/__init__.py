"""Share groups (KIP-932): members share partitions, and the broker gives each of them other records."""
