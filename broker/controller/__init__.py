"""What decides about topics, leaders and brokers: pure decisions over the registry's tree, and the view they read."""
