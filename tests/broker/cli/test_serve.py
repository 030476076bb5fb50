"""`barnabas serve`, as far as it goes before anything starts: what is wrong with the settings is said all at once."""

import pytest

from broker.cli import main


@pytest.fixture
def refused(tmp_path, capsys):
    """Run `serve` with arguments that are wrong; returns what it said."""

    def refused(*arguments):
        data = tmp_path / "data"
        assert main(["serve", "--data", str(data), *arguments]) == 2
        assert not data.exists()
        said = capsys.readouterr()
        assert said.out == ""
        return said.err

    return refused


def test_a_name_that_nobody_knows_is_named(refused):
    assert (
        refused("--set", "no.such.setting=1") == "barnabas: --set: no.such.setting is not a setting that Kafka knows\n"
    )


def test_a_value_of_the_wrong_type_is_shown_beside_its_name(refused):
    said = refused("--set", "num.partitions=many")
    assert "num.partitions" in said
    assert "'many'" in said


def test_a_problem_in_the_file_is_named_by_its_line(refused, tmp_path):
    file = tmp_path / "server.properties"
    file.write_text("# mine\nnum.partitions=3\nsocket.request.max.bytes=-1\n")
    assert f"{file}:3: socket.request.max.bytes" in refused("--config", str(file))


def test_all_problems_are_told_at_once_one_a_line(refused):
    said = refused("--set", "no.such.setting=1", "--set", "num.partitions=many", "--set", "nonsense")
    assert len(said.splitlines()) == 3


def test_a_file_that_is_not_there_is_named(refused, tmp_path):
    assert str(tmp_path / "missing") in refused("--config", str(tmp_path / "missing"))


@pytest.mark.parametrize("address", ["9092", "localhost", "localhost:", "localhost:kafka"])
def test_an_address_without_a_port_is_refused(address, capsys):
    with pytest.raises(SystemExit) as exit:
        main(["serve", "--listen", address])
    assert exit.value.code == 2
    assert f"argument --listen: '{address}' is not of the form HOST:PORT" in capsys.readouterr().err


def test_an_address_that_is_more_than_one_is_refused(refused):
    assert "listeners" in refused("--listen", "PLAINTEXT://localhost:9092")
