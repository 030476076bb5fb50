"""Batches from the time at which brokers with a manual clock start: for them, today's batches are in the future."""

from functools import partial

from barnabas.client.requests import records

batch = partial(records.batch, timestamp=1_000_000)
