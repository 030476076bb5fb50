"""One of two brokers to which a story of share groups is played: members have a name and a connection each."""

from barnabas.broker.share.key import SharePartitionKey
from barnabas.client.requests import shares
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from tests.support.polling import pause
from tests.support.side_by_side import Side

# The others have version 0 alone.
VERSIONS = {ApiKey.WRITE_SHARE_GROUP_STATE: 1, ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: 1}


class ShareSide(Side):
    """`group` is that of the story that is being played."""

    def __init__(self, port):
        super().__init__(port)
        self.group = ""
        self._wires = {}
        self.members = {}

    def begin(self, group):
        for wire in self._wires.values():
            wire.close()
        self._wires.clear()
        self.group = group

    def place(self, topic="t", partition=0):
        """As requests name a partition."""
        self.create_topic(topic, partitions=2)
        return self.name(topic, by_id=True), partition

    def state(self, key, message):
        return self.ask(key, message, VERSIONS.get(key, 0))

    def wait_for_coordinator(self):
        """Nothing tells a client that a coordinator has created and loaded its topic; polling is the only way."""
        key = SharePartitionKey("g", *self.place())
        while self.find_coordinator(key.coordinator_key).error_code:
            pause()
        summary = shares.read_share_group_state_summary("g", self.place())
        while self.state(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, summary).results[0].partitions[0].error_code:
            pause()

    def find_coordinator(self, *keys, version=6):
        message = FindCoordinatorRequest(key_type=2, coordinator_keys=list(keys))
        return self.ask(ApiKey.FIND_COORDINATOR, message, version).coordinators[0]

    # --- the state of share partitions ---

    def initialize(self, place, **fields):
        return self.state(
            ApiKey.INITIALIZE_SHARE_GROUP_STATE, shares.initialize_share_group_state(self.group, place, **fields)
        )

    def write(self, place, *batches, **fields):
        message = shares.write_share_group_state(self.group, place, *batches, **fields)
        return self.state(ApiKey.WRITE_SHARE_GROUP_STATE, message)

    def read(self, place, leader_epoch=0):
        return self.state(ApiKey.READ_SHARE_GROUP_STATE, shares.read_share_group_state(self.group, place, leader_epoch))

    def summary(self, *places):
        return self.state(
            ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, shares.read_share_group_state_summary(self.group, *places)
        )

    def delete(self, *places):
        return self.state(ApiKey.DELETE_SHARE_GROUP_STATE, shares.delete_share_group_state(self.group, *places))
