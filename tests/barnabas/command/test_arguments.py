"""Where the broker is: the command line, the environment, the config file, the default, in this order."""

import argparse

import pytest

from barnabas.client.connection import Address
from barnabas.command import command_parser
from barnabas.command.arguments import bootstrap, brokers_and_timeout
from barnabas.command.ending import UsageError


@pytest.fixture
def config(tmp_path, monkeypatch):
    """Writes the user's config file. The real user's environment has no influence."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for variable in ("BARNABAS_BOOTSTRAP", "BARNABAS_PROFILE"):
        monkeypatch.delenv(variable, raising=False)
    file = tmp_path / "barnabas" / "config.toml"
    file.parent.mkdir()
    return file.write_text


def found(*arguments):
    return brokers_and_timeout(command_parser().parse_args(arguments))


def host(*arguments):
    ((address,), _) = found(*arguments)
    return address.host


PROFILES = """
profile = "local"

[profiles.local]
bootstrap = "laptop"

[profiles.staging]
bootstrap = "staging"
timeout = "10s"

[profiles.slow]
timeout = "2m"
"""


def test_a_bootstrap_list():
    assert bootstrap("localhost") == [Address("localhost", 9092)]
    assert bootstrap("a:1, [::1]:2") == [Address("a", 1), Address("::1", 2)]


@pytest.mark.parametrize("text", ["", "localhost:", ":9092", "a:b", "a:0", "a:65536", "a:1,"])
def test_what_is_not_an_address_is_refused(text):
    with pytest.raises(argparse.ArgumentTypeError, match="not of the form HOST or HOST:PORT"):
        bootstrap(text)


@pytest.mark.parametrize(
    "arguments",
    [
        ("-b", "x", "topics", "list"),
        ("topics", "-b", "x", "list"),
        ("topics", "list", "-b", "x"),
        ("topics", "list", "--bootstrap", "x"),
        ("--bootstrap=x", "produce", "t"),
        ("consume", "t", "-bx"),
        ("-b", "y", "topics", "list", "-b", "x"),
    ],
    ids=" ".join,
)
def test_the_broker_may_be_named_anywhere(config, arguments):
    assert found(*arguments) == ([Address("x", 9092)], 30.0)


def test_by_default_the_broker_is_on_this_machine(config):
    assert found("topics", "list") == ([Address("127.0.0.1", 9092)], 30.0)


def test_the_environment(config, monkeypatch):
    monkeypatch.setenv("BARNABAS_BOOTSTRAP", "a,b:1")
    assert found("topics", "list")[0] == [Address("a", 9092), Address("b", 1)]
    assert host("topics", "list", "-b", "x") == "x"


def test_profiles(config, monkeypatch):
    config(PROFILES)
    assert host("topics", "list") == "laptop"
    assert found("--profile", "staging", "topics", "list") == ([Address("staging", 9092)], 10.0)
    assert found("topics", "list", "--profile", "staging", "--timeout", "1s") == ([Address("staging", 9092)], 1.0)
    assert host("topics", "list", "--profile", "staging", "-b", "x") == "x"
    monkeypatch.setenv("BARNABAS_PROFILE", "staging")
    assert host("topics", "list") == "staging"
    assert host("topics", "list", "--profile", "local") == "laptop"


def test_the_command_line_wins_over_the_environment_and_that_over_the_file(config, monkeypatch):
    config(PROFILES)
    monkeypatch.setenv("BARNABAS_BOOTSTRAP", "environment")
    assert host("topics", "list") == "environment"
    assert host("topics", "list", "--profile", "staging") == "staging"
    assert found("topics", "list", "--profile", "slow") == ([Address("environment", 9092)], 120.0)


@pytest.mark.parametrize(
    ("content", "arguments", "said"),
    [
        ("", ["--profile", "x"], "no profile is called 'x'; it has none"),
        (PROFILES, ["--profile", "x"], "no profile is called 'x'; it has local, staging, slow"),
        ("profile = 'x'", [], "no profile is called 'x'"),
        ("profile = 1", [], "profile is the name of a profile"),
        ("bootstrap = 'x'", [], "has no key 'bootstrap'; its keys are profile and profiles"),
        (
            "[profiles.a]\nbootstap = 'x'",
            ["--profile", "a"],
            "profiles.a has no key 'bootstap'; its keys are bootstrap",
        ),
        ("[profiles.a]\nbootstrap = 'x:y'", ["--profile", "a"], "profiles.a.bootstrap: 'x:y' is not of the form"),
        ("[profiles.a]\ntimeout = 5", ["--profile", "a"], "profiles.a.timeout is a text, in quotes"),
        ("[profiles.a]\ntimeout = 'soon'", ["--profile", "a"], "profiles.a.timeout: 'soon' is not a duration"),
        ("profiles = 1", [], "profiles are tables"),
        ("profile =", [], "config.toml: Invalid value"),
    ],
)
def test_a_config_file_that_is_wrong(config, content, arguments, said):
    config(content)
    with pytest.raises(UsageError, match=r"config\.toml") as error:
        found("topics", "list", *arguments)
    assert said in str(error.value)


def test_a_profile_without_a_file(config):
    with pytest.raises(UsageError, match=r"config\.toml: no profile is called 'x'; there is no file"):
        found("topics", "list", "--profile", "x")


def test_a_variable_that_is_wrong_is_named(config, monkeypatch):
    monkeypatch.setenv("BARNABAS_BOOTSTRAP", "x:y")
    with pytest.raises(UsageError, match="BARNABAS_BOOTSTRAP: 'x:y' is not of the form"):
        found("topics", "list")


def test_the_file_is_in_the_home_directory_unless_xdg_says_otherwise(tmp_path, monkeypatch):
    from barnabas.command.profiles import config_file

    monkeypatch.setenv("HOME", str(tmp_path))
    for value in ("", "relative"):
        monkeypatch.setenv("XDG_CONFIG_HOME", value)
        assert config_file() == tmp_path / ".config" / "barnabas" / "config.toml"
