"""A member of a group in a process of its own, to be killed. It says so when it has been assigned partitions.

python -m tests.integration.clients.member_process LIBRARY BOOTSTRAP GROUP TOPIC SESSION_TIMEOUT_MS
"""

import sys

from tests.integration.clients.conftest import CLIENTS
from tests.integration.clients.groups import Group


def main(library: str, bootstrap: str, name: str, topic: str, session_timeout_ms: str) -> None:
    group = Group(name)
    member = group.join(CLIENTS[library](bootstrap), topic, settings={"session.timeout.ms": int(session_timeout_ms)})
    group.poll_until(lambda: bool(member.assignment()), "an assignment")
    print("assigned", flush=True)
    while True:
        member.poll()


if __name__ == "__main__":
    main(*sys.argv[1:])
