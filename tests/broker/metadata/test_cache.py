"""broker.metadata.cache: the cluster as the controller describes it."""

from barnabas.broker.controller.images import LEADER_DURING_DELETE, BrokerImage, Endpoint, PartitionImage, TopicImage
from barnabas.broker.controller.orders import TYPE_FULL, TYPE_PARTIAL, MetadataOrder, Sender, update_metadata
from barnabas.broker.metadata.cache import MetadataCache

ID, OTHER_ID = b"i" * 16, b"o" * 16
BROKERS = {
    number: BrokerImage(number, (Endpoint("PLAINTEXT", "PLAINTEXT", f"host{number}", 9092),), f"rack{number}")
    for number in (1, 2)
}


def partition(index, leader=1, epoch=0):
    return PartitionImage(index, (1, 2), leader, epoch, (1, 2), 0)


def topic(*partitions, topic_id=ID):
    return TopicImage("t", topic_id, partitions, {}, 0)


def told(cache, *topics, brokers=BROKERS, controller=1, kind=TYPE_PARTIAL):
    orders = [MetadataOrder(each, partition) for each in topics for partition in each.partitions]
    cache.update(update_metadata(Sender(controller, 7), -1, orders, brokers, kind))


def make_cache(configs=None):
    configs = {} if configs is None else configs
    return MetadataCache("cluster", lambda name: dict(configs.get(name, {})), {})


def test_it_shows_what_it_was_told():
    cache = make_cache({"t": {"retention.ms": "1"}})
    told(cache, topic(partition(0), partition(1, leader=2)))
    assert cache.brokers == BROKERS
    assert (cache.controller_id, cache.controller_epoch) == (1, 7)
    assert cache.topic("t").configs == {"retention.ms": "1"}
    assert cache.topic_by_id(ID) is cache.topic("t")
    assert cache.partition("t", 1).leader_id == 2
    assert cache.partition("t", 2) is None
    assert cache.offline_replicas(cache.partition("t", 0)) == []


def test_a_change_of_one_partition_leaves_the_others():
    cache = make_cache()
    told(cache, topic(partition(0), partition(1)))
    told(cache, topic(partition(1, leader=2, epoch=1)))
    assert [each.leader_id for each in cache.topic("t").partitions] == [1, 2]


def test_listeners_are_called_for_changes_and_nothing_else():
    cache = make_cache()
    changes = []
    cancel = cache.subscribe(changes.append)
    told(cache, topic(partition(0)))
    told(cache, topic(partition(0)))
    (change,) = changes
    assert (change.topics["t"].old, change.topics["t"].new) == (None, cache.topic("t"))
    assert change.brokers
    cancel()
    told(cache, topic(partition(0, leader=2)))
    assert len(changes) == 1


def test_a_deleted_topic_is_gone():
    cache = make_cache()
    told(cache, topic(partition(0), partition(1)))
    told(cache, topic(partition(0, leader=LEADER_DURING_DELETE), partition(1, leader=LEADER_DURING_DELETE)))
    assert cache.topic("t") is None
    assert cache.topic_by_id(ID) is None


def test_the_deletion_of_an_earlier_topic_of_the_name_is_ignored():
    cache = make_cache()
    told(cache, topic(partition(0), topic_id=OTHER_ID))
    told(cache, topic(partition(0, leader=LEADER_DURING_DELETE)))
    assert cache.topic_by_id(OTHER_ID) is cache.topic("t") is not None


def test_a_topic_that_was_created_again_has_only_its_new_partitions():
    cache = make_cache()
    told(cache, topic(partition(0), partition(1)))
    told(cache, topic(partition(0), topic_id=OTHER_ID))
    assert len(cache.topic("t").partitions) == 1
    assert cache.topic_by_id(ID) is None


def test_a_broker_that_is_gone_leaves_its_replicas_offline():
    cache = make_cache()
    told(cache, topic(partition(0)))
    told(cache, brokers={1: BROKERS[1]})
    assert cache.offline_replicas(cache.partition("t", 0)) == [2]


def test_settings_are_followed():
    configs = {"t": {}}
    cache = make_cache(configs)
    told(cache, topic(partition(0)))
    changes = []
    cache.subscribe(changes.append)
    configs["t"] = {"retention.ms": "5"}
    cache.topic_configs_changed(["t", "unknown"])
    assert cache.topic("t").configs == {"retention.ms": "5"}
    cache.topic_configs_changed(["t"])
    cache.broker_configs_changed(None, {"num.io.threads": "2"})
    assert cache.broker_configs(None) == {"num.io.threads": "2"}
    assert cache.configured_brokers() == [None]
    assert [bool(change.broker_configs) for change in changes] == [False, True]


def test_a_topic_that_is_missing_in_a_full_update_is_gone():
    """It was deleted when this broker had no session, or by a controller that died before it told anybody."""
    cache = make_cache()
    told(cache, topic(partition(0)))
    changes = []
    cache.subscribe(changes.append)
    told(cache)
    assert cache.topic("t") is not None
    told(cache, kind=TYPE_FULL)
    assert (cache.topic("t"), cache.topic_by_id(ID)) == (None, None)
    assert [change.topics["t"].new for change in changes] == [None]
