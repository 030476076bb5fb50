"""Record batches of magic 2, as Produce, Fetch and segment files carry them.

    batch         a batch's header: read, check, patch in place
    record        the records inside a batch: read, encode
    builder       build a batch
    control       the records that end a transaction
    compression   gzip, snappy, lz4 and zstd, with bounded output
    errors        the exceptions

Everything here is pure: bytes in, bytes out.
"""
