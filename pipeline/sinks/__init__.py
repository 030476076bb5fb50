"""Where rows go. Exactly once into a topic is done in two ways: `topic_per_task` and `topic_per_batch`."""
