"""The cluster as the controller describes it to this broker."""
