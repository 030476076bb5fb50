"""Sockets: listeners, connections, and the path of a frame to its handler and of the answer back."""
