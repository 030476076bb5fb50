"""How much clients may use: limits, measured rates, and for how long to hold back who is over a limit.

Pure: time is passed in, and nobody is held back here.
"""
