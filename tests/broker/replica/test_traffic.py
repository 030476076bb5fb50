"""What went in and out, by topic; a total never decreases."""

from barnabas.broker.replica.traffic import Traffic


def test_the_total_includes_deleted_topics():
    traffic = Traffic()
    traffic.of("kept").messages_in += 3
    traffic.of("deleted").messages_in += 4
    traffic.of("deleted").bytes_out += 100
    traffic.forget("deleted")
    traffic.forget("never there")
    assert list(traffic.topics) == ["kept"]
    assert traffic.total().messages_in == 7
    assert traffic.total().bytes_out == 100
    assert traffic.of("deleted").messages_in == 0


def test_a_topic_has_one_object_for_all_its_partitions():
    traffic = Traffic()
    assert traffic.of("orders") is traffic.of("orders")
