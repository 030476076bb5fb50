"""What can be found out about a query without Spark."""

import pytest

pytest.importorskip("pyspark")

from barnabas.pipeline.sql import problem_of, references


@pytest.mark.parametrize(
    ("sql", "views"),
    [
        ("SELECT * FROM lines", ["lines"]),
        ("SELECT window.start, count(*) FROM words GROUP BY window(_timestamp, '10 seconds'), word", ["words"]),
        ("SELECT * FROM a, b LEFT JOIN c ON a.x = c.x, d WHERE a.y IN (SELECT y FROM e)", ["a", "b", "c", "d", "e"]),
        ("WITH x AS (SELECT 1 FROM a) SELECT * FROM x JOIN `odd name` USING (k)", ["a", "odd name"]),
        ("SELECT extract(year FROM t), trim(BOTH 'x' FROM u) FROM a", ["a"]),
        ("SELECT * FROM a WHERE b IS DISTINCT FROM c", ["a"]),
        ("SELECT * FROM a LATERAL VIEW explode(m) t AS k, v", ["a"]),
        ("SELECT * FROM (SELECT x, y FROM a) AS b, c", ["a", "c"]),
        ("SELECT 'FROM x' -- FROM y\n FROM a /* FROM z */", ["a"]),
        ("SELECT * FROM range(10), catalog.db.t, a", ["a"]),
        ("FROM a SELECT x, y", ["a"]),
        ("SELECT a.x, b.y FROM a ORDER BY x, y", ["a"]),
    ],
)
def test_views_that_a_query_reads(sql, views):
    assert problem_of(sql) is None
    assert [token.text.strip("`") for token in references(sql)] == views


@pytest.mark.parametrize(
    ("sql", "said", "line"),
    [
        ("", "the query is empty", 0),
        ("SELEC 1", "begins with SELECT or WITH, not with 'SELEC'", 0),
        ("SELECT (a\nFROM t", "the ( is not closed", 0),
        ("SELECT a\nFROM t)", "the ) closes nothing", 1),
        ("SELECT 'a\nFROM t", "the quotation mark ' is not closed", 0),
        ("SELECT a[1)\nFROM t", "the ) closes nothing", 0),
        ("SELECT a\n/* b", "the comment /* is not closed", 1),
    ],
)
def test_mistakes_are_found_with_their_line(sql, said, line):
    problem = problem_of(sql)
    assert problem is not None
    assert said in problem.message
    assert problem.line == line
