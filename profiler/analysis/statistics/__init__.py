"""Tests, intervals, power and exact sums over plain arrays of numbers."""
