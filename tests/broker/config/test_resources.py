from barnabas.broker.config.resources import describe_client_metrics, describe_loggers


def test_only_names_that_are_asked_for():
    assert [entry.name for entry in describe_client_metrics(["match"])] == ["match"]
    assert describe_loggers(["bogus"]) == []


def test_there_is_one_logger():
    assert [(entry.name, entry.value) for entry in describe_loggers()] == [("root", "INFO")]
