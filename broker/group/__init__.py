"""Consumer groups and their offsets: pure state machines. What they need of the world is handed to them."""
