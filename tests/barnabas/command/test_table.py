import json

from barnabas.command.table import as_json, render

COLUMNS = {"name": "NAME", "count": "COUNT", "left": "LEFT"}


def test_columns_are_as_wide_as_needed_and_lines_have_no_trailing_blanks():
    rows = [{"name": "a", "count": 10, "left": "x"}, {"name": "longer", "count": 7, "left": "y"}]
    assert render(COLUMNS, rows).splitlines() == [
        "NAME    COUNT  LEFT",
        "a       10     x",
        "longer  7      y",
    ]


def test_a_missing_value_is_a_dash_and_zero_is_zero():
    line = render(COLUMNS, [{"name": None, "count": 0, "left": []}]).splitlines()[1]
    assert line.split() == ["-", "0", "-"]


def test_lists_flags_and_assignments_are_written_for_people():
    line = render(COLUMNS, [{"name": [0, 1], "count": True, "left": {"a": [0, 2], "b": [1]}}]).splitlines()[1]
    assert line.split() == ["0,1", "yes", "a:0,2;b:1"]


def test_without_rows_there_are_the_titles():
    assert render(COLUMNS, []) == "NAME  COUNT  LEFT"


def test_json_has_the_same_rows_as_they_are():
    rows = [{"name": "ä", "count": None, "left": [1]}]
    assert json.loads(as_json(rows)) == rows
    assert "\n" not in as_json(rows, one_line=True)
    assert "ä" in as_json(rows)


def test_names_chosen_by_clients_do_not_control_the_terminal():
    rows = [{"name": "\x1b[2J", "count": ["\x9b"], "left": {"\n": 1}}]
    assert render(COLUMNS, rows).splitlines()[1].split() == [r"\x1b[2J", r"\x9b", r"\x0a:1"]
    assert not {"\x1b", "\x9b"} & set(as_json(rows))
