"""Numbers as shown: expected texts written by hand."""

from __future__ import annotations

import math

import pytest

from profiler.model.interval import Interval
from reports.quantities import counted, percent, probability, scale_for, significant_decimals


@pytest.mark.parametrize(
    ("largest_ns", "expected"),
    [
        (0, "0 ns"),
        (9_999, "9,999 ns"),
        (10_000, "10.0 µs"),
        (9_999_949, "9,999.9 µs"),
        (10_000_000, "10.0 ms"),
        (1_234_567_890, "1,234.6 ms"),
        (10_000_000_000, "10.00 s"),
        (3_725_100_000_000, "3,725.10 s"),
    ],
)
def test_time_takes_the_largest_unit_with_two_digits(largest_ns: int, expected: str) -> None:
    assert scale_for([largest_ns], "ns").quantity(largest_ns) == expected


def test_one_scale_serves_the_whole_column() -> None:
    scale = scale_for([1_234_567_890, 2_500_000, -70_000], "ns")
    assert [scale.number(value) for value in (1_234_567_890, 2_500_000, -70_000)] == ["1,234.6", "2.5", "-0.1"]
    assert scale.unit == "ms"


def test_other_units_are_never_called_time() -> None:
    assert scale_for([1_500_000_000], "cycles").quantity(1_500_000_000) == "1,500.0 M cycles"
    assert scale_for([25_000_000_000], "cycles").quantity(25_000_000_000) == "25.00 G cycles"
    assert scale_for([12], "page-faults").quantity(12) == "12 page-faults"
    assert scale_for([3.25], "").quantity(3.25) == "3.250"
    assert scale_for([15_000.0], "").quantity(15_000.0) == "15,000"


def test_very_large_numbers_are_powers_of_ten() -> None:
    assert scale_for([7.614946e18], "").quantity(7.614946e18) == "7.615e+18"
    assert scale_for([999_999_999_999.0], "").quantity(999_999_999_999.0) == "999,999,999,999"


def test_zero_has_no_sign() -> None:
    scale = scale_for([20_000_000], "ns")
    assert scale.number(-1_000) == "0.0"
    assert scale.signed(1_000) == "0.0"
    assert scale.signed(-1_000) == "0.0"
    assert scale.signed(60_000) == "+0.1"


def test_an_interval_decides_the_digits() -> None:
    scale = scale_for([100_000_000], "ns")
    assert scale.decimals_within(Interval(-1_000_000, 1_000_000)) == 1  # half width 1.0 ms
    assert scale.decimals_within(Interval(-120_000, 120_000)) == 2  # 0.12 ms
    assert scale.decimals_within(Interval(-40_000_000, 40_000_000)) == 0
    assert scale.decimals_within(Interval(-400_000_000, 400_000_000)) == -1
    assert scale.decimals_within(None) == 1


def test_digits_before_the_point_that_an_interval_does_not_support_are_zeros() -> None:
    count = scale_for([106_110_372.0], "")
    within = count.decimals_within(Interval(-12_096_212.0, 9_874_950.0))
    assert [count.signed(value, within) for value in (-1_110_631.0, -12_096_212.0, 9_874_950.0, 400_000.0)] == [
        "-1,000,000", "-12,000,000", "+10,000,000", "0",
    ]  # fmt: skip
    assert count.number(16_820_162.4, count.decimals_of(16_820_162.4)) == "17,000,000"


@pytest.mark.parametrize(
    ("half_width", "decimals"),
    [(0.034, 3), (0.34, 2), (3.4, 1), (34, 0), (3400, 0), (1e-9, 6), (0, 7), (math.inf, 7), (math.nan, 7)],
)
def test_two_significant_digits(half_width: float, decimals: int) -> None:
    assert significant_decimals(half_width, 7) == decimals


def test_shares_and_probabilities() -> None:
    assert percent(0.0674) == "6.7 %"
    assert percent(-0.0001) == "0.0 %"
    assert percent(1.0) == "100.0 %"
    assert [probability(p) for p in (None, 0.0, 0.00004, 0.00012, 0.0341, 0.61, 1.0, math.nan)] == [
        "", "<0.0001", "<0.0001", "0.0001", "0.034", "0.61", "1", "",
    ]  # fmt: skip
    assert [counted(number, "run") for number in (0, 1, 2, 1200)] == ["0 runs", "1 run", "2 runs", "1,200 runs"]
