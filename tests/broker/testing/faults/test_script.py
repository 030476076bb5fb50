"""Faults from files."""

import builtins

import pytest

from barnabas.broker.testing.faults.script import ScriptError, load


def write(folder, text, name="faults.yaml"):
    path = folder / name
    path.write_text(text)
    return str(path)


def test_a_list_of_faults_in_yaml(tmp_path):
    path = write(
        tmp_path, "- api: Produce\n  error: NOT_LEADER_OR_FOLLOWER\n  times: 2\n- {api: Fetch, delay_ms: 250}\n"
    )
    assert load(path) == [
        {"api": "Produce", "error": "NOT_LEADER_OR_FOLLOWER", "times": 2},
        {"api": "Fetch", "delay_ms": 250},
    ]


def test_the_list_may_have_a_name(tmp_path):
    assert load(write(tmp_path, "faults: [{delay_ms: 5}]")) == [{"delay_ms": 5}]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("- {api: Produce, eror: X}", "fault 1: eror: there is no such field"),
        ("- {delay_ms: 5}\n- {delay_ms: no}", "fault 2: delay_ms: must be"),
        ("api: Produce", "it contains no list of faults"),
        ("- [", "while parsing"),
        ("- x", "fault 1: fault: must be a mapping"),
    ],
)
def test_an_error_is_reported_with_the_file(tmp_path, text, complaint):
    path = write(tmp_path, text)
    with pytest.raises(ScriptError) as caught:
        load(path)
    assert str(caught.value).startswith(f"{path}: {complaint}")


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(ScriptError, match="No such file"):
        load(str(tmp_path / "none.yaml"))


def test_json_needs_no_yaml(tmp_path, monkeypatch):
    real = builtins.__import__

    def without_yaml(name, *rest):
        if name == "yaml":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without_yaml)
    assert load(write(tmp_path, '[{"delay_ms": 5}]', "faults.json")) == [{"delay_ms": 5}]
    with pytest.raises(ScriptError, match=r"needs PyYAML: pip install '\.\[yaml\]'"):
        load(write(tmp_path, "- {delay_ms: 5}"))
