"""Which versions of the requests of consumer groups go together.

A `level` is the age of a client: the version of JoinGroup that it would use, and of every other request the one that
is nearest to it. The levels together cover every version of every request.
"""

from barnabas.protocol.api import ApiKey

VERSIONS = {
    ApiKey.OFFSET_COMMIT: range(2, 11),
    ApiKey.OFFSET_FETCH: range(1, 11),
    ApiKey.FIND_COORDINATOR: range(7),
    ApiKey.JOIN_GROUP: range(10),
    ApiKey.HEARTBEAT: range(5),
    ApiKey.LEAVE_GROUP: range(6),
    ApiKey.SYNC_GROUP: range(6),
    ApiKey.DESCRIBE_GROUPS: range(7),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: range(2),
    ApiKey.CONSUMER_GROUP_DESCRIBE: range(2),
    ApiKey.SHARE_GROUP_HEARTBEAT: range(1, 2),
    ApiKey.SHARE_GROUP_DESCRIBE: range(1, 2),
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: range(2),
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: range(1),
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: range(1),
    ApiKey.LIST_GROUPS: range(6),
    ApiKey.DELETE_GROUPS: range(3),
    ApiKey.OFFSET_DELETE: range(1),
}
LEVELS = range(11)
STATIC_MEMBERS = range(7, 11)  # from here on every request can name an instance


def version_at(key: ApiKey, level: int) -> int:
    versions = VERSIONS[key]
    return min(max(level, versions.start), versions.stop - 1)
