"""Requests in one line each, by family: `lookup`, `data`, `groups`, `transactions` and `admin`;
`records` has batches for them.

A builder has the name of its API. Where the shape of a request depends on its version, the version comes first. Fields
that a builder does not name can be given by their own names.
"""
