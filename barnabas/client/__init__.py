"""A small synchronous Kafka client for the command line. It knows the protocol, but nothing about our own broker.

wire            one socket that carries whole frames
security        TLS and passwords
connection      requests and answers in the versions that both sides speak
client          the cluster behind a bootstrap list: leaders, coordinators, retries
offsets         where partitions begin and end, and how far groups have read
group_admin     groups as an administrator sees them
config_admin    settings of topics, brokers and groups
user_admin      users who log in with SCRAM
partitioner     which partition a key belongs to
creation        topics that the broker creates when they are first asked for
record_encoder  records to bytes, many at a time
producer        batches in flight: in order, exactly once
fetcher         records from many partitions at once
fetched         from the bytes of a Fetch answer to records: compression, transactions
subscription    the topics that somebody reads, by name or by pattern
range_assignor  how partitions are shared among the members of a group
member          membership in a group: join, heartbeat, commit, leave
errors          what can go wrong, one sentence each
"""
