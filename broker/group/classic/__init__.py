"""Classic groups: members agree on an assignment among themselves, and the coordinator passes it on."""
