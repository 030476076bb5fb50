"""Segment files read into Spark without a broker: `spark.read.format("barnabas").load(directory)`.

    source         the data source as Spark sees it: options, columns, the parts that tasks read
    directory      the partitions and segments that are there
    transactions   what of a partition was aborted, and from where on it is undecided
    batches        a stretch of a segment file, batch by batch
    columns        many batches, and many records, as columns of numbers
    native         the records inside batches, decoded by compiled code
    arrow          those as Arrow columns

The formats are Kafka's (storage/FORMAT.md), so the directory of an Apache Kafka broker will do as well. Nothing is
written and nothing is locked: the directory may be in use, or be what a crash has left.
"""
