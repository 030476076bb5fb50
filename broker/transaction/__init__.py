"""Producers' ids and transactions."""
