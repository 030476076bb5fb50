"""Record batches of magic 2: what a Produce carries, a segment file holds and a Fetch hands out.

    batch         a batch's header: read it, check it, patch it in place
    record        the records inside a batch: read them, encode them
    builder       make a batch
    control       the records that end a transaction
    compression   gzip, snappy, lz4 and zstd, bounded
    errors        what can be wrong

Everything here is pure: bytes in, bytes out.
"""
