from broker.config import BrokerConfig
from broker.internal_topics import new_topic


def test_the_brokers_own_topics_are_made_by_their_own_settings():
    config = BrokerConfig({"offsets.topic.num.partitions": "7", "transaction.state.log.num.partitions": "5"})
    offsets, transactions = new_topic("__consumer_offsets", config), new_topic("__transaction_state", config)
    assert (offsets.num_partitions, offsets.configs["cleanup.policy"]) == (7, "compact")
    assert (transactions.num_partitions, transactions.configs["cleanup.policy"]) == (5, "compact")


def test_any_other_topic_is_made_by_the_defaults():
    topic = new_topic("t", BrokerConfig())
    assert (topic.num_partitions, topic.replication_factor, topic.configs) == (-1, -1, {})
