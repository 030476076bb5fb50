"""Where rows go. There are two ways to write exactly once into a topic: `topic_per_task` and `topic_per_batch`."""
