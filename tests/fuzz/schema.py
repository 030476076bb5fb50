"""The declarations of messages, each looked up once: the lookup takes longer than everything else about a frame."""

from functools import cache

from barnabas.protocol.schema import wire_types

types_of = cache(wire_types)
