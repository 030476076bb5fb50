from collections.abc import Callable

import pytest

from benchmarks.broker.java_tools import consumed_per_second, produced_per_second

PRODUCER = """\
Warmup first 50000 records. Steady state results will print after the complete test summary.
31676 records sent, 6335.2 records/sec (6.19 MB/sec), 2345.3 ms avg latency, 3051.0 ms max latency.
150000 records sent, 9633.91 records/sec (9.41 MB/sec), 2589.98 ms avg latency, 5693.00 ms max latency, 1988 ms 50th.
100000 steady state records sent, 10917.03 records/sec (10.66 MB/sec), 1940.19 ms avg latency, 3051.00 ms max latency.
"""
CONSUMER = """\
start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec
2026-01-02 03:23:02:853, 2026-01-02 03:23:09:802, 146.4844, 21.0799, 150000, 21585.83, 3628, 3321, 44.1085, 45167.1183
"""  # noqa: E501


def test_the_producers_rate_is_that_of_its_steady_state() -> None:
    assert produced_per_second(PRODUCER) == 10917.03


def test_the_consumers_rate_leaves_out_the_rebalance() -> None:
    assert consumed_per_second(CONSUMER) == 45167.1183


@pytest.mark.parametrize("parse", [produced_per_second, consumed_per_second])
def test_output_without_a_summary_is_an_error_that_shows_it(parse: Callable[[str], float]) -> None:
    with pytest.raises(ValueError, match="TimeoutException"):
        parse("org.apache.kafka.common.errors.TimeoutException: no such topic\n")
