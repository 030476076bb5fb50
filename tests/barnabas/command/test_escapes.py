import pytest

from barnabas.command.escapes import unescape


@pytest.mark.parametrize(
    ("written", "meant"),
    [(r"\t", "\t"), (r"a\nb", "a\nb"), (r"\\t", r"\t"), (r"\0", "\0"), (r"\x", r"\x"), ("plain: ü", "plain: ü")],
)
def test_unescape(written, meant):
    assert unescape(written) == meant
