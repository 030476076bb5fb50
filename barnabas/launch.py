"""Starts the `barnabas` command of the distribution that this file belongs to, whatever else is called `broker`.

It is run as a script, with Python's -P. The packages of the broker lie beside this one: they are imported from there
before anything else can be, and the path is then again as Python made it.
"""

import os
import sys
from importlib import import_module

if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    for package in ("broker", "protocol", "storage"):
        import_module(package)
    del sys.path[0]
    from broker.cli import main

    sys.exit(main())
