"""Modules beside a pipeline's file, without Spark: each run has its own, and executors do not need their files."""

import importlib
import subprocess
import sys

import pytest

pytest.importorskip("pyspark")

from pyspark import cloudpickle

from barnabas.pipeline.frames.modules import imported_from
from barnabas.pipeline.module_files import file_of


def packed(folder, module, name):
    """What is sent to executors of a function."""
    with imported_from(folder):
        return cloudpickle.dumps(getattr(importlib.import_module(module), name))


def called_elsewhere(content):
    """By a process that knows nothing of any folder."""
    program = "import sys; from pyspark import cloudpickle; print(cloudpickle.load(sys.stdin.buffer)())"
    done = subprocess.run([sys.executable, "-c", program], input=content, capture_output=True, check=True)
    return done.stdout.decode().strip()


def test_a_module_travels_with_all_that_it_imports_beside_it(tmp_path):
    (tmp_path / "mine.py").write_text(
        "import helping\nfrom package.inner import two\nfrom plain.deep import three\nfrom package import sibling\n"
        "def total():\n    return helping.one() + two() + three() + sibling.four()\n"
    )
    (tmp_path / "helping.py").write_text("def one():\n    return 1\n")
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("")
    (tmp_path / "package" / "inner.py").write_text("from .sibling import four\ndef two():\n    return four() - 2\n")
    (tmp_path / "package" / "sibling.py").write_text("def four():\n    return 4\n")
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "deep.py").write_text("def three():\n    return 3\n")
    before, path, registered = set(sys.modules), list(sys.path), cloudpickle.list_registry_pickle_by_value()
    assert called_elsewhere(packed(tmp_path, "mine", "total")) == "10"
    left = {name.partition(".")[0] for name in set(sys.modules) - before}
    assert not left & {"mine", "helping", "package", "plain"}
    assert (sys.path, cloudpickle.list_registry_pickle_by_value()) == (path, registered)


def test_a_module_that_was_edited_is_read_again(tmp_path):
    """Also within the second in which a .pyc would still be taken for it, and of the same length."""
    for number in "123":
        (tmp_path / "mine.py").write_text(f"def number():\n    return {number}\n")
        assert called_elsewhere(packed(tmp_path, "mine", "number")) == number
    assert not (tmp_path / "__pycache__").exists()


def test_modules_of_the_same_name_in_two_folders(tmp_path):
    for name in "ab":
        (tmp_path / name).mkdir()
        (tmp_path / name / "mine.py").write_text(f"def name():\n    return {name!r}\n")
    assert [called_elsewhere(packed(tmp_path / name, "mine", "name")) for name in "aba"] == ["a", "b", "a"]


def test_a_module_that_the_process_has_from_elsewhere_is_there_again_afterwards(tmp_path, monkeypatch):
    for name in "ab":
        (tmp_path / name).mkdir()
        (tmp_path / name / "mine_from_elsewhere.py").write_text(f"def name():\n    return {name!r}\n")
    monkeypatch.syspath_prepend(tmp_path / "a")
    own = importlib.import_module("mine_from_elsewhere")
    try:
        assert called_elsewhere(packed(tmp_path / "b", "mine_from_elsewhere", "name")) == "b"
        assert importlib.import_module("mine_from_elsewhere") is own
        # The process's own, beside the file: no second one is made of it, and it travels like the others.
        assert called_elsewhere(packed(tmp_path / "a", "mine_from_elsewhere", "name")) == "a"
        assert importlib.import_module("mine_from_elsewhere") is own
    finally:
        del sys.modules["mine_from_elsewhere"]


def test_a_module_that_fails_leaves_nothing_behind(tmp_path):
    (tmp_path / "mine.py").write_text("import helping\nraise ValueError('no')\n")
    (tmp_path / "helping.py").write_text("")
    with imported_from(tmp_path):
        for _ in range(2):
            with pytest.raises(ValueError, match="no"):
                importlib.import_module("mine")
    assert not {"mine", "helping"} & set(sys.modules)
    assert not {"mine", "helping"} & cloudpickle.list_registry_pickle_by_value()


def test_names_of_python_and_of_ours_are_taken(tmp_path):
    for name in ("json", "pipeline", "mine"):
        (tmp_path / f"{name}.py").touch()
    assert [file_of(name, tmp_path) for name in ("json", "pipeline", "mine", "missing")] == [
        None, None, tmp_path / "mine.py", None,
    ]  # fmt: skip
