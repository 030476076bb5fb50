"""Groups of the consumer protocol (KIP-848): the coordinator assigns, and members reconcile one by one."""
