"""How much clients may use: limits, measured rates, and for how long to throttle a client that is over a limit.

Pure: time is passed in, and nothing here throttles anybody.
"""
