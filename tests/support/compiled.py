"""For tests that replace or watch what mypyc compiles: a compiled class does not allow it, nor one in its place."""

from inspect import isfunction

import pytest

from barnabas.storage.log import Log

IS_COMPILED = not isfunction(Log.roll)

replaces_a_method = pytest.mark.skipif(IS_COMPILED, reason="compiled, a method cannot be replaced")
