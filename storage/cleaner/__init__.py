"""Compaction: of every key a log keeps the last record, as Kafka's cleaner does it.

A log that is compacted has two sections. Up to the first dirty offset it was compacted before, and every key occurs
once. The dirty section follows. It ends before the active segment, before the last stable offset, before what is not
known to be on disk, and before anything younger than `min.compaction.lag.ms`.

    cleanable      which section of a log may be compacted, and whether it is time to
    plan           all that is needed for the work, in plain data
    offset_map     the last offset of every key in the dirty section
    transactions   which batches were aborted, and which markers are needed no more
    batch_cleaner  what stays of a batch
    record_scan    keys and records in the bytes of a batch, as fast as Python goes
    rewrite        the work itself: segments in, compacted segments out
    work           where that is done: in a process of its own
    pace           how fast, and whether to stop
    cleaner        all of it together, one step after the other

What stays of the cleaned segments, from the first of the log to the last dirty one:

- A record that is the last of its key in the dirty section, or whose key does not occur there. Records without a key
  go.
- A tombstone (a record without a value) until `delete.retention.ms` after the first compaction that met it, so that
  every reader can see it. That moment, the delete horizon, is written into its batch: attribute bit 6 says that the
  base timestamp is one.
- Nothing of aborted transactions. The marker that ends a transaction stays until nothing else is left of it, then as
  long as a tombstone would.
- Offsets never change, nor does the range of offsets of a batch, since it says which sequence numbers the batch had.
  A batch that has lost all of its records goes, except for the last one of a producer that is still known, and the
  last one that was compacted: of those the header stays. (Kafka keeps no more than that of a marker, either; here a
  marker stays whole, so that recovery finds in it what it says about the producer.)

The work is done beside the log, and segments that have been compacted are swapped in one after the other
(storage.swap).
"""
