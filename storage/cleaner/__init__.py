"""Compaction: the log keeps the last record of every key, as Kafka's cleaner does.

A compacted log has two sections. Up to the first dirty offset it was compacted before, and every key occurs once. The
dirty section follows. It ends before the active segment, before the last stable offset, before anything that is not
known to be on disk, and before anything younger than `min.compaction.lag.ms`.

    cleanable      which section of a log may be compacted, and whether it is due
    plan           everything the work needs, as plain data
    offset_map     the last offset of every key in the dirty section
    transactions   which batches were aborted, and which markers are obsolete
    batch_cleaner  what remains of a batch
    record_scan    fast scanning for keys and records in the bytes of a batch
    rewrite        the work itself: segments in, compacted segments out
    work           runs it in a separate process
    pace           limits its rate, and stops it
    cleaner        puts it together, step by step

What remains of the cleaned segments, from the first of the log to the last dirty one:

- A record that is the last of its key in the dirty section, or whose key does not occur there. Records without a key
  are removed.
- A tombstone (a record without a value) until `delete.retention.ms` after the first compaction that found it, so that
  every reader can see it. That time, the delete horizon, is written into its batch: with attribute bit 6, the base
  timestamp is a delete horizon.
- Nothing of aborted transactions. The marker that ends a transaction remains until nothing else is left of it, and then
  for as long as a tombstone would.
- Offsets never change. Neither does the offset range of a batch, because it determines the batch's sequence numbers. A
  batch without any records left is removed, except for the last batch of a producer that is still known and the last
  batch that was compacted: their headers remain. (Kafka also keeps only the header of a marker. Here the whole marker
  remains, so that recovery can restore the producer's state from it.)

The work does not touch the log. Compacted segments are swapped in one after another (barnabas.storage.swap).
"""
