"""Batches from the time at which brokers with a manual clock begin: to them, those of today lie in the future."""

from functools import partial

from barnabas.client.requests import records

batch = partial(records.batch, timestamp=1_000_000)
