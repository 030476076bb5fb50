"""SyncGroup (key 14): hand out and receive the assignment of a generation.

The leader sends it, everybody waits for it. From version 5 a member says by which protocol it means to be assigned.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.server.request import Request
from protocol.messages.sync_group import SyncGroupRequest

if TYPE_CHECKING:
    from broker.broker import Broker


def handle(broker: Broker, request: Request, message: SyncGroupRequest) -> None:
    broker.groups.sync(message, request.answer)
