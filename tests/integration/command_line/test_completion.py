"""Completion in real shells: what a user types, tab by tab."""

import os
import shutil
import subprocess
import sys

import pytest

from tests.support.terminal import Terminal

PROMPT = "ready> "


@pytest.fixture
def environment(served, tmp_path):
    """A user with nothing but the command in the path, and a broker in the environment."""
    program = tmp_path / "bin" / "barnabas"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m barnabas "$@"\n')
    program.chmod(0o755)
    (tmp_path / "some-file").touch()
    return {
        "PATH": f"{program.parent}:{os.environ['PATH']}",
        "PYTHONPATH": os.getcwd(),
        "HOME": str(tmp_path),
        "TERM": "dumb",
        "LANG": "C.UTF-8",
        "PS1": PROMPT,
        "BARNABAS_BOOTSTRAP": served.bootstrap,
    }


def need(shell):
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")


@pytest.fixture
def bash(environment, tmp_path):
    need("bash")
    with Terminal("bash", "--norc", "--noprofile", "-i", environment=environment) as shell:
        shell.type(f"cd {tmp_path}; bind 'set bell-style none'; source <(barnabas completion bash); echo so''urced\n")
        shell.wait_for("sourced")
        yield shell


@pytest.fixture
def zsh(environment, tmp_path):
    need("zsh")
    with Terminal("zsh", "-f", "-i", environment=environment) as shell:
        setup = "autoload -Uz compinit; compinit -u; source <(barnabas completion zsh); unsetopt beep"
        shell.type(f"cd {tmp_path}; {setup}; echo so''urced\n")
        shell.wait_for("sourced")
        yield shell


@pytest.fixture
def topics(done, topic):
    done("topics", "create", f"{topic}-alpha", f"{topic}-beta")
    return topic


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_a_line_is_typed_with_tabs(request, shell, topics):
    terminal = request.getfixturevalue(shell)
    terminal.type("barnabas top\t")
    terminal.wait_for("topics ")
    terminal.type("desc\t")
    terminal.wait_for("describe ")
    terminal.type(f"{topics}-al\t")
    terminal.wait_for("pha ")
    terminal.type("--all\t")
    terminal.wait_for("-configs ")
    terminal.type("\n")
    terminal.wait_for(f"Topic {topics}-alpha")


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_values_after_an_equals_sign_keys_and_files(request, shell, topics):
    terminal = request.getfixturevalue(shell)
    terminal.type("barnabas produce --acks=a\t")
    terminal.wait_for("ll ")
    terminal.type("--file some\t")
    terminal.wait_for("-file")
    terminal.type("\x15")  # the line is discarded
    terminal.type(f"barnabas configs set topic {topics}-alpha retention.m\t1000\n")
    terminal.wait_for(f"set retention.ms=1000 on topic '{topics}-alpha'")


def test_fish(environment, topics, tmp_path):
    need("fish")

    def completed(line):
        script = f"barnabas completion fish | source; complete -C {line!r}"
        done = subprocess.run(
            ["fish", "--no-config", "-c", script],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.stderr == ""
        return [word.partition("\t")[0] for word in done.stdout.splitlines()]

    assert completed("barnabas top") == ["topics"]
    assert completed("barnabas topics del") == ["delete", "delete-records"]
    assert completed(f"barnabas consume {topics}-") == [f"{topics}-alpha", f"{topics}-beta"]
    assert completed("barnabas produce --acks=") == ["--acks=0", "--acks=1", "--acks=all"]
    assert completed("barnabas produce --file some") == ["some-file"]


def test_groups_and_another_broker(done, produce, topic, group, served, capsys, monkeypatch):
    from barnabas.command import main

    produce(topic, "a")
    done("consume", topic, "--group", group, "-e")
    monkeypatch.delenv("BARNABAS_BOOTSTRAP", raising=False)
    assert main(["__complete", "fish", "groups", "describe", "-b", served.bootstrap, group]) == 0
    assert group in capsys.readouterr().out.split()
