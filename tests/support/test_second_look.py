from tests.support.second_look import deserve_a_second_look

CLIENT = "tests/integration/clients/test_groups.py::test_a_member_joins[KafkaPython]"


def test_a_few_tests_of_real_clients_do():
    assert deserve_a_second_look([CLIENT])
    assert deserve_a_second_look([CLIENT, "tests/integration/test_readme.py::test_it", "tests/integration/a.py::b"])


def test_a_test_of_our_own_code_does_not():
    assert not deserve_a_second_look([CLIENT, "tests/storage/test_log.py::test_roll"])
    assert not deserve_a_second_look(["tests/barnabas/simulation/test_seeds.py::test_seed[7]"])


def test_a_lost_record_does_not():
    assert not deserve_a_second_look(["tests/integration/cluster/torture/test_torture.py::test_nothing_is_lost"])


def test_many_do_not():
    assert not deserve_a_second_look([f"tests/integration/test_a.py::test_{number}" for number in range(4)])


def test_a_run_that_failed_without_a_failed_test_does_not():
    assert not deserve_a_second_look([])
