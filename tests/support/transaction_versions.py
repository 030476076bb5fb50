"""Which versions of the requests of transactional producers go together.

An `age` is that of a client. The first five are classic ones, from the oldest to the latest, which add partitions by
themselves; the NEWEST leaves that to the broker (KIP-890). Together they cover every version that a client may send.
"""

from barnabas.protocol.api import ApiKey

AGES = range(6)
OLDEST, LATEST_CLASSIC, NEWEST = 0, 4, 5
CLASSIC = range(5)

VERSIONS = {
    ApiKey.INIT_PRODUCER_ID: (0, 1, 2, 3, 4, 5),
    ApiKey.ADD_PARTITIONS_TO_TXN: (0, 1, 2, 3, 4, 5),
    ApiKey.ADD_OFFSETS_TO_TXN: (0, 1, 2, 3, 4, 4),
    ApiKey.END_TXN: (0, 1, 2, 3, 4, 5),
    ApiKey.TXN_OFFSET_COMMIT: (0, 1, 2, 3, 4, 5),
    ApiKey.PRODUCE: (3, 5, 7, 8, 11, 12),
    ApiKey.FETCH: (4, 5, 7, 11, 12, 18),
    ApiKey.LIST_OFFSETS: (2, 3, 4, 5, 7, 10),
    ApiKey.WRITE_TXN_MARKERS: (1, 1, 1, 1, 1, 2),
    ApiKey.LIST_TRANSACTIONS: (0, 0, 0, 0, 1, 2),
    ApiKey.DESCRIBE_TRANSACTIONS: (0, 0, 0, 0, 0, 0),
    ApiKey.FIND_COORDINATOR: (1, 2, 3, 4, 5, 6),
}
