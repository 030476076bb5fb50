"""SASL: how clients authenticate, before anything else on their connection."""
