from barnabas.broker.config import BrokerConfig
from barnabas.broker.internal_topics import new_topic


def test_the_brokers_own_topics_are_made_by_their_own_settings():
    config = BrokerConfig({"offsets.topic.num.partitions": "7", "transaction.state.log.num.partitions": "5"})
    offsets, transactions = new_topic("__consumer_offsets", config), new_topic("__transaction_state", config)
    assert (offsets.num_partitions, offsets.configs["cleanup.policy"]) == (7, "compact")
    assert (transactions.num_partitions, transactions.configs["cleanup.policy"]) == (5, "compact")


def test_any_other_topic_is_made_by_the_defaults():
    topic = new_topic("t", BrokerConfig())
    assert (topic.num_partitions, topic.replication_factor, topic.configs) == (-1, -1, {})


def test_they_have_a_replica_on_each_broker_up_to_three():
    config = BrokerConfig()
    for brokers, replicas, min_isr in [(0, 1, 1), (1, 1, 1), (2, 2, 1), (3, 3, 2), (5, 3, 2)]:
        offsets, transactions = (
            new_topic(name, config, brokers) for name in ("__consumer_offsets", "__transaction_state")
        )
        assert offsets.replication_factor == transactions.replication_factor == replicas
        assert transactions.configs["min.insync.replicas"] == str(min_isr)


def test_unless_settings_say_otherwise():
    config = BrokerConfig(
        {
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "2",
            "transaction.state.log.min.isr": "2",
        }
    )
    assert new_topic("__consumer_offsets", config, 3).replication_factor == 1
    transactions = new_topic("__transaction_state", config, 3)
    assert (transactions.replication_factor, transactions.configs["min.insync.replicas"]) == (2, "2")
