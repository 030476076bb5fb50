"""A small synchronous Kafka client for the commands. It knows the protocol and nothing of the broker beside it.

connection      one socket: frames, and the versions that both sides speak
client          the cluster behind a bootstrap list: who leads, who coordinates, trying again
offsets         where partitions begin and end, and how far groups have read
group_admin     groups as an administrator sees them
partitioner     which partition a key belongs to
producer        batches on their way, in order and once
fetcher         records from many partitions, whatever their codec and their transactions
range_assignor  partitions shared out among the members of a group
member          membership in a group: join, heartbeat, commit, leave
errors          what can go wrong, each in one sentence
"""
