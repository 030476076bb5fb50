"""Simulated clients. They speak the protocol over the simulated network, follow leaders and coordinators, retry as real
clients do, and note in the history what they did and what they were told."""
