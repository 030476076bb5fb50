"""Segment files read into Spark without a broker: `spark.read.format("barnabas").load(directory)`.

    source         the data source as Spark sees it: options, columns, the parts that tasks read
    directory      the partitions and segments that are there
    transactions   what was aborted in a partition, and where its undecided part begins
    batches        a range of a segment file, batch by batch
    columns        many batches, and many records, as columns of numbers
    native         the records inside batches, decoded by compiled code
    arrow          records as Arrow columns

The formats are Kafka's (storage/FORMAT.md), so the directory of an Apache Kafka broker works as well. Nothing is
written or locked: the directory may be in use, or left over from a crash.
"""
