import pytest

from benchmarks.broker.comparison import Better, Figures, Line, Spread, compare, percentile

RATE = Line("rate", "a rate", "msg/s", Better.HIGHER, target=1.5)
TIME = Line("time", "a time", "us", Better.LOWER, target=0.5)


class TestPercentile:
    def test_is_the_smallest_value_that_so_many_do_not_exceed(self) -> None:
        hundred = [float(value) for value in range(100, 0, -1)]
        assert percentile(hundred, 50) == 50
        assert percentile(hundred, 99) == 99
        assert percentile(hundred, 100) == 100

    def test_of_few_values_is_one_of_them(self) -> None:
        assert percentile([3.0, 1.0], 50) == 1.0
        assert percentile([3.0, 1.0], 99) == 3.0
        assert percentile([7.0], 1) == 7.0

    def test_of_nothing_is_an_error(self) -> None:
        with pytest.raises(ValueError, match="no values"):
            percentile([], 50)


class TestLine:
    def test_a_rate_meets_its_target_from_there_upwards(self) -> None:
        assert RATE.met(1.5)
        assert not RATE.met(1.49)

    def test_a_time_meets_its_target_from_there_downwards(self) -> None:
        assert TIME.met(0.5)
        assert not TIME.met(0.51)

    def test_without_a_target_there_is_nothing_to_meet(self) -> None:
        assert Line("rate", "a rate", "msg/s", Better.HIGHER).met(3.0) is None

    def test_half_the_time_is_as_good_as_twice_the_rate(self) -> None:
        assert RATE.advantage(2.0) == TIME.advantage(0.5) == 2.0


class TestCompare:
    def test_a_ratio_is_taken_within_each_round(self) -> None:
        figures = Figures()
        for theirs, ours in [(100.0, 200.0), (10.0, 30.0), (1000.0, 1000.0)]:
            figures.add("theirs", {"rate": theirs})
            figures.add("ours", {"rate": ours})
        (row,) = compare([RATE], figures, ours="ours", theirs="theirs", bare="bare")
        assert row.ratio == Spread(median=2.0, low=1.0, high=3.0)
        assert row.kafka == Spread(median=100.0, low=10.0, high=1000.0)
        assert row.barnabas == Spread(median=200.0, low=30.0, high=1000.0)
        assert row.limit is None
        assert row.client_busy is None

    def test_the_bare_loop_and_the_load_of_the_client_are_medians(self) -> None:
        figures = Figures()
        for value in (1.0, 2.0, 4.0):
            for contestant in ("ours", "theirs"):
                figures.add(contestant, {"rate": value})
                figures.add_client_busy(contestant, {"rate": value / 10})
            figures.add("bare", {"rate": 10 * value})
        (row,) = compare([RATE], figures, ours="ours", theirs="theirs", bare="bare")
        assert row.limit == 20.0
        assert row.client_busy == 0.2

    def test_a_line_without_figures_of_both_is_left_out(self) -> None:
        figures = Figures()
        figures.add("theirs", {"rate": 1.0, "time": 1.0})
        figures.add("ours", {"time": 1.0})
        rows = compare([RATE, TIME], figures, ours="ours", theirs="theirs", bare="bare")
        assert [row.line.key for row in rows] == ["time"]

    def test_a_round_that_only_one_of_them_finished_is_an_error(self) -> None:
        figures = Figures()
        figures.add("theirs", {"rate": 1.0})
        figures.add("theirs", {"rate": 1.0})
        figures.add("ours", {"rate": 1.0})
        with pytest.raises(ValueError, match="longer"):
            compare([RATE], figures, ours="ours", theirs="theirs", bare="bare")
