import pytest

from barnabas.broker.config.errors import InvalidConfigError
from barnabas.broker.config.setting import integer, long, password, settings_of


class Example:
    queue_max_size = integer(10, "How many wait.", at_least=1)
    queue_age_ms = long(None, "How long they wait.")
    queue_secret = password("Who may wait.")


def test_a_setting_is_called_by_kafka_s_name():
    assert settings_of(Example).keys() == {"queue.max.size", "queue.age.ms", "queue.secret"}
    assert Example.queue_max_size.name == "queue.max.size"
    assert Example.queue_max_size.attribute == "queue_max_size"


def test_an_instance_has_the_value_and_the_class_the_setting():
    example = Example()
    example.__dict__.update(queue_max_size=3)
    assert example.queue_max_size == 3
    assert Example.queue_max_size.default == 10


def test_an_ill_typed_value_is_named_with_what_is_expected():
    with pytest.raises(InvalidConfigError) as caught:
        Example.queue_max_size.parse("many")
    assert str(caught.value) == "queue.max.size is 'many', but it must be a whole number from 1 to 2147483647"


def test_surrounding_blanks_do_not_count():
    assert Example.queue_max_size.parse("  7\t") == 7


def test_a_value_that_is_not_set_shows_as_none():
    assert Example.queue_age_ms.show(None) is None
    assert Example.queue_age_ms.show(5) == "5"


def test_a_password_is_sensitive():
    assert Example.queue_secret.sensitive
    assert not Example.queue_max_size.sensitive
