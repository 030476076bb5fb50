"""`barnabas serve`, as far as it goes before anything starts: all errors in the settings are reported at once."""

import pytest

from barnabas.command import main, serve


@pytest.fixture
def refused(tmp_path, capsys):
    """Run `serve` with wrong arguments; returns its error output."""

    def refused(*arguments):
        data = tmp_path / "data"
        assert main(["serve", "--data", str(data), *arguments]) == 2
        assert not data.exists()
        said = capsys.readouterr()
        assert said.out == ""
        return said.err

    return refused


def test_an_unknown_setting_is_named(refused):
    said = refused("--config", "no.such.setting=1")
    assert said == "barnabas: --config: no.such.setting is not a Kafka setting\n"


def test_a_value_of_the_wrong_type_is_shown_beside_its_name(refused):
    said = refused("--config", "num.partitions=many")
    assert "num.partitions" in said
    assert "'many'" in said


def test_a_problem_in_the_file_is_named_by_its_line(refused, tmp_path):
    file = tmp_path / "server.properties"
    file.write_text("# mine\nnum.partitions=3\nsocket.request.max.bytes=-1\n")
    assert f"{file}:3: socket.request.max.bytes" in refused(str(file))


def test_all_problems_are_reported_at_once_one_per_line(refused):
    said = refused("--config", "no.such.setting=1", "--config", "num.partitions=many")
    assert len(said.splitlines()) == 2


def test_a_file_that_is_not_there_is_named(refused, tmp_path):
    assert str(tmp_path / "missing") in refused(str(tmp_path / "missing"))


@pytest.mark.parametrize("address", ["9092", "localhost", "localhost:", "localhost:kafka"])
def test_an_address_without_a_port_is_refused(address, capsys):
    with pytest.raises(SystemExit) as exit:
        main(["serve", "--listen", address])
    assert exit.value.code == 2
    assert f"argument --listen: '{address}' is not of the form HOST:PORT" in capsys.readouterr().err


@pytest.mark.parametrize("address", ["9080", "localhost", ":9080", "localhost:http", "localhost:65536"])
def test_a_console_without_host_and_port_is_refused(address, capsys):
    with pytest.raises(SystemExit) as exit:
        main(["serve", "--console", address])
    assert exit.value.code == 2
    assert f"argument --console: '{address}' is not of the form HOST:PORT" in capsys.readouterr().err


@pytest.mark.parametrize("address", ["http", "-1", "65536", "localhost:99999", "localhost:"])
def test_a_control_interface_without_a_possible_port_is_refused(address, capsys):
    with pytest.raises(SystemExit) as exit:
        main(["serve", f"--control={address}"])
    assert exit.value.code == 2
    assert f"argument --control: '{address}' is not of the form [HOST:]PORT" in capsys.readouterr().err


def test_a_console_that_may_write_needs_a_console(refused):
    assert refused("--console-write") == "barnabas: --console-write needs --console\n"


def test_a_listener_with_an_unknown_name_is_refused(refused):
    assert "listener.security.protocol.map" in refused("--listen", "OUTSIDE://localhost:9092")


def test_two_places_that_say_where_to_listen_are_refused(refused):
    said = refused("--listen", "localhost:9092", "--config", "listeners=SSL://localhost:9093")
    assert "both say where to listen" in said


def test_a_file_after_a_settings_option_is_an_error_that_says_where_it_belongs(capsys):
    with pytest.raises(SystemExit):
        main(["serve", "--config", "server.properties"])
    assert "a properties file needs no option: barnabas serve server.properties" in capsys.readouterr().err


@pytest.mark.parametrize("count", ["0", "33", "-1", "three", ""])
def test_an_invalid_number_of_brokers_is_refused(count, capsys):
    with pytest.raises(SystemExit) as exit:
        main(["serve", f"--brokers={count}"])
    assert exit.value.code == 2
    assert f"argument --brokers: '{count}' is not a number from 1 to 32" in capsys.readouterr().err


@pytest.mark.parametrize("address", ["localhost:9092,", "localhost:9092,kafka", "localhost:,9092"])
def test_each_of_several_ports_must_be_valid(address, capsys):
    with pytest.raises(SystemExit):
        main(["serve", "--brokers", "2", "--listen", address])
    assert f"argument --listen: '{address}' is not of the form HOST:PORT" in capsys.readouterr().err


def test_more_ports_than_brokers_are_refused(refused):
    assert "--listen has 3 ports for 2 broker(s)" in refused("--brokers", "2", "--listen", "localhost:9092,9093,9094")


def test_a_garbage_collection_examines_few_objects():
    """The loop waits for it; ten thousand objects take milliseconds."""
    young, times, _ = serve._GARBAGE_COLLECTION
    assert young * (times + 2) <= 12_000
