"""What the coordinators share: decide, append, replay, answer."""
