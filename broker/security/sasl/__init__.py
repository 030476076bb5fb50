"""SASL: how clients say who they are, before anything else on their connection."""
