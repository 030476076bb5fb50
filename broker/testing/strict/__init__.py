"""Strict mode: what clients do against the protocol is reported, and answered as always."""
