"""Strict mode: reports clients that violate the protocol, and answers them as usual."""
