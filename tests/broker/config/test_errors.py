from barnabas.broker.config.errors import ConfigError, did_you_mean


def test_a_config_error_has_one_line_per_problem():
    error = ConfigError(["one is wrong", "two is wrong"])
    assert error.problems == ("one is wrong", "two is wrong")
    assert str(error) == "one is wrong\ntwo is wrong"


def test_the_nearest_name_is_suggested():
    assert did_you_mean("num.partition", ["num.partitions", "node.id"]) == "; did you mean num.partitions?"
    assert did_you_mean("colour", ["num.partitions", "node.id"]) == ""
