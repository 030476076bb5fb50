import os
import sys

import pytest

from barnabas.command import search_path

OWN = search_path._OWN


@pytest.mark.parametrize(
    ("python_path", "before", "after"),
    [
        ("", ["/lib", "/site", OWN], ["/lib", "/site", OWN]),
        ("/user", ["/user", "/lib", "/site", OWN], ["/lib", "/site", OWN, "/user"]),
        ("/a:/b", ["/a", "/b", "/lib", "/site"], ["/lib", "/site", "/a", "/b"]),
        (f"/a:{OWN}:/b", ["/a", OWN, "/b", "/lib"], [OWN, "/lib", "/a", "/b"]),
    ],
    ids=["no PYTHONPATH", "a project", "several folders", "this package among them"],
)
def test_folders_of_the_python_path_come_last(monkeypatch, python_path, before, after):
    monkeypatch.setenv("PYTHONPATH", python_path)
    monkeypatch.setattr(sys, "path", before)
    search_path.prefer_installed()
    assert sys.path == after


def test_a_relative_folder_of_the_python_path_comes_last(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "project")
    monkeypatch.setattr(sys, "path", [os.path.abspath("project"), "/lib"])
    search_path.prefer_installed()
    assert sys.path == ["/lib", os.path.abspath("project")]
