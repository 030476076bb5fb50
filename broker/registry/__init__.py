"""The tree of cluster facts, as Kafka kept it in ZooKeeper: one interface, and the embedded tree behind it."""
