"""Cases of groups of every kind, and of their offsets."""

from barnabas.client.requests import groups, share_groups
from barnabas.client.requests.streams import (
    streams_group_describe,
    streams_group_heartbeat,
    subtopology,
    topology,
)
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.describe_groups import DescribeGroupsRequest
from barnabas.protocol.messages.list_groups import ListGroupsRequest
from tests.integration.access.case import UNKNOWN_ID, Case, topic

CASES: dict[str, Case] = {
    "JoinGroup": Case(
        ApiKey.JOIN_GROUP,
        [0, 5, 7, 9],
        lambda side, version: groups.join_group("g", "nobody"),
        ["read group g"],
        [["describe group g"]],
    ),
    "SyncGroup": Case(
        ApiKey.SYNC_GROUP,
        [0, 3, 5],
        lambda side, version: groups.sync_group("g", "nobody", 1, protocol_type="consumer", protocol_name="range"),
        ["read group g"],
    ),
    "Heartbeat": Case(
        ApiKey.HEARTBEAT, [0, 4], lambda side, version: groups.heartbeat("g", "nobody", 1), ["read group g"]
    ),
    "LeaveGroup": Case(
        ApiKey.LEAVE_GROUP,
        [0, 3, 5],
        lambda side, version: groups.leave_group(version, "g", "nobody"),
        ["read group g"],
    ),
    "DescribeGroups": Case(
        ApiKey.DESCRIBE_GROUPS,
        [0, 3, 6],
        lambda side, version: DescribeGroupsRequest(
            groups=["g", "h"], **({"include_authorized_operations": True} if version >= 3 else {})
        ),
        ["describe group g", "describe group h"],
        [["read group g"], ["all group *"]],
    ),
    "StreamsGroupHeartbeat": Case(
        ApiKey.STREAMS_GROUP_HEARTBEAT,
        [0],
        lambda side, version: streams_group_heartbeat("nogroup", "m", 1),
        ["read group nogroup"],
        [["describe group nogroup"]],
    ),
    "StreamsGroupHeartbeat with a topology": Case(
        ApiKey.STREAMS_GROUP_HEARTBEAT,
        [0],
        lambda side, version: streams_group_heartbeat(
            "s", "m", 0, topology=topology(subtopology("0", "t", sinks=["u"], changelogs=["absent"])), rack_id=""
        ),
        ["read group s", "describe topic t", "describe topic u", "describe topic absent"],
        [["read group s", "read topic *"]],
    ),
    "StreamsGroupHeartbeat of who may not create topics": Case(
        ApiKey.STREAMS_GROUP_HEARTBEAT,
        [0],
        lambda side, version: streams_group_heartbeat(
            "s", "m", 0, topology=topology(subtopology("0", "t", changelogs=["absent"]))
        ),
        ["read group s", "describe topic t", "describe topic absent"],
    ),
    "StreamsGroupDescribe": Case(
        ApiKey.STREAMS_GROUP_DESCRIBE,
        [0],
        lambda side, version: streams_group_describe("flow", "h", operations=True),
        ["describe group flow", "describe group h", "describe topic t", "describe topic u"],
        [["read group flow", "read topic *"]],
    ),
    "ListGroups": Case(
        ApiKey.LIST_GROUPS,
        [0, 5],
        lambda side, version: ListGroupsRequest(states_filter=[], types_filter=[]),
        ["describe cluster"],
        [["describe group g"], ["read group h*"]],
    ),
    "DeleteGroups": Case(
        ApiKey.DELETE_GROUPS,
        [0, 2],
        lambda side, version: groups.delete_groups("nogroup", "other"),
        ["delete group nogroup", "delete group other"],
        [["read group nogroup"]],
    ),
    "ShareGroupHeartbeat": Case(
        ApiKey.SHARE_GROUP_HEARTBEAT,
        [1],
        lambda side, version: share_groups.share_group_heartbeat("share", "nobody", 5, ["t", "u"]),
        ["read group share", "describe topic t", "describe topic u"],
        [["describe group share"], ["read group share", "read topic t", "read topic u"]],
    ),
    "ShareGroupDescribe": Case(
        ApiKey.SHARE_GROUP_DESCRIBE,
        [1],
        lambda side, version: share_groups.share_group_describe("share", "h", operations=True),
        ["describe group share", "describe group h"],
        [["read group share"]],
    ),
    "DescribeShareGroupOffsets": Case(
        ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
        [0, 1],
        lambda side, version: share_groups.describe_share_group_offsets(
            {"share": {"absent": [0], "absent-too": [0, 1]}, "h": None}
        ),
        ["describe group share", "describe group h", "describe topic absent"],
        [["read group share", "read group h"]],
    ),
    "AlterShareGroupOffsets": Case(
        ApiKey.ALTER_SHARE_GROUP_OFFSETS,
        [0],
        lambda side, version: share_groups.alter_share_group_offsets("share", ("absent", 0, 1), ("t", 7, 1)),
        ["read group share", "read topic absent", "read topic t"],
        [["describe group share"], ["read group share", "describe topic t"]],
    ),
    "DeleteShareGroupOffsets": Case(
        ApiKey.DELETE_SHARE_GROUP_OFFSETS,
        [0],
        lambda side, version: share_groups.delete_share_group_offsets("no-share", "absent", "t"),
        ["delete group no-share", "read topic absent", "read topic t"],
        [["read group no-share"]],
    ),
    "OffsetCommit": Case(
        ApiKey.OFFSET_COMMIT,
        [2, 9, 10],
        lambda side, version: groups.offset_commit(
            "g", (topic(side, "t", version, 10), 0, 1), (topic(side, "u", version, 10), 0, 1)
        ),
        ["read group g", "read topic t", "read topic u"],
        [["describe group g"]],
    ),
    "OffsetCommit of what is not there": Case(
        ApiKey.OFFSET_COMMIT,
        [9],
        lambda side, version: groups.offset_commit("g", ("absent", 0, 1), ("t", 7, 1)),
        ["read group g", "read topic t", "read topic absent"],
    ),
    "OffsetFetch": Case(
        ApiKey.OFFSET_FETCH,
        [1, 2, 7, 8, 10],
        lambda side, version: groups.offset_fetch(
            version, {"g": [(topic(side, "t", version, 10), [0]), (topic(side, "u", version, 10), [0])]}
        ),
        ["describe group g", "describe topic t", "describe topic u"],
        [["read group g", "read topic t"]],
    ),
    "OffsetFetch of all": Case(
        ApiKey.OFFSET_FETCH,
        [2, 8, 10],
        lambda side, version: groups.offset_fetch(version, {"g": None}),
        ["describe group g", "describe topic t", "describe topic u"],
    ),
    "OffsetFetch of an unknown id": Case(
        ApiKey.OFFSET_FETCH,
        [10],
        lambda side, version: groups.offset_fetch(version, {"g": [(UNKNOWN_ID, [0])]}),
        ["describe group g"],
    ),
    "OffsetDelete": Case(
        ApiKey.OFFSET_DELETE,
        [0],
        lambda side, version: groups.offset_delete("g", ("t", 7), ("absent", 0)),
        ["delete group g", "read topic t", "read topic absent"],
    ),
}
