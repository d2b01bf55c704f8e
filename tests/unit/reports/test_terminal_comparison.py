"""A comparison on a terminal: whole texts written by hand."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from profiler.model.comparison import Comparison, MetricComparison, Verdict
from profiler.model.quality import ReportWarning
from reports.comparison_report import ComparisonReport, shown_rows
from reports.terminal_comparison import render_comparison
from reports.terminal_table import TerminalStyle
from support.report_values import MS, arm_costs, comparison, comparison_row, cost_table


def sample_comparison() -> Comparison:
    rows = [
        comparison_row(
            "SHA-256", [500 * MS, 510 * MS, 505 * MS], [400 * MS, 405 * MS, 410 * MS], Verdict.FASTER,
            delta_interval=(-110 * MS, -90 * MS), p=0.0003, visible_effect=5 * MS, sigma=12.34, no_overlap=True,
        ),
        comparison_row(
            "tree iteration", [300 * MS, 290 * MS, 295 * MS], [301 * MS, 292 * MS, 297 * MS],
            delta_interval=(-3.4 * MS, 6.7 * MS), p=0.61, visible_effect=5.3 * MS, runs_needed=24, sigma=0.31,
        ),
        comparison_row("malloc", [30 * MS] * 3, [30 * MS] * 3, Verdict.EQUIVALENT, delta_interval=(-0.5 * MS, 0.5 * MS), p=1.0),
    ]  # fmt: skip
    total = comparison_row(
        "total", [835 * MS, 830 * MS, 825 * MS], [731 * MS, 727 * MS, 737 * MS], Verdict.FASTER,
        delta_interval=(-106 * MS, -91 * MS), p=0.0001, sigma=30.2, no_overlap=True,
    )  # fmt: skip
    wall = comparison_row(
        "wall", [900 * MS] * 3, [800 * MS] * 3, Verdict.FASTER, delta_interval=(-105 * MS, -95 * MS), p=0.0004
    )
    rate = comparison_row("rate", [3.2, 3.2, 3.2], [3.5, 3.5, 3.5], Verdict.SLOWER, delta_interval=(0.2, 0.4), p=0.01)
    metrics = [MetricComparison("ns", wall), MetricComparison("", rate)]
    return comparison(rows, total, metrics, warnings=(ReportWarning("kernel", "kernels differ", "use one host"),))


def test_wide() -> None:
    report = ComparisonReport(sample_comparison(), (arm_costs([cost_table({"other": [1]})]),))
    assert render_comparison(report, TerminalStyle(113)) == (
        "cand against base: total -98.3 ms [-106.0, -91.0], -11.8 %, p = 0.0001: faster. Largest change: SHA-256 -100 ms\n"
        "  [-110, -90], -19.8 %.\n"
        "cpu-clock by category, 3 runs against 3 runs, paired t, 3 rows tested, p adjusted by Holm, intervals 95 %\n"
        "  unadjusted\n"
        "\n"
        "category         base   cand  delta ms    95 % interval   change  verdict                    p adj  visible  runs\n"
        "SHA-256         505.0  405.0      -100      [-110, -90]  -19.8 %  faster                    0.0003     ±5.0\n"
        "tree iteration  295.0  296.7      +1.7     [-3.4, +6.7]   +0.6 %  inside noise                0.61     ±5.3    24\n"
        "malloc           30.0   30.0      0.00   [-0.50, +0.50]    0.0 %  no difference beyond 1 %       1\n"
        "total           830.0  731.7     -98.3  [-106.0, -91.0]  -11.8 %  faster                    0.0001\n"
        "\n"
        "metric  unit   base   cand   delta    95 % interval   change  verdict       p\n"
        "wall    ms    900.0  800.0  -100.0  [-105.0, -95.0]  -11.1 %  faster   0.0004\n"
        "rate          3.200  3.500   +0.30   [+0.20, +0.40]   +9.4 %  higher    0.010\n"
        "\n"
        "visible: the smallest difference that these runs could show; runs: per arm, to decide the difference seen; no\n"
        "  difference beyond: in rows, a part of the baseline's total\n"
        "\n"
        "base: quality ok: 1,000 samples, 100.0 % complete stacks\n"
        "\n"
        "warning kernel: kernels differ (use one host)\n"
    )


def test_the_widest_form_has_sigma_and_overlap() -> None:
    lines = render_comparison(ComparisonReport(sample_comparison()), TerminalStyle(160)).splitlines()
    headers = next(line for line in lines if line.startswith("category")).split("verdict")[1].split()
    assert headers == ["p", "adj", "sigma", "visible", "runs", "apart"]
    assert next(line for line in lines if line.startswith("SHA-256")).split()[-4:] == ["0.0003", "12.3", "±5.0", "yes"]


def test_at_60_columns_the_answer_stays() -> None:
    text = render_comparison(ComparisonReport(sample_comparison()), TerminalStyle(60))
    assert text.split("\n\n")[1] == (
        "category        delta ms   change  verdict\n"
        "SHA-256             -100  -19.8 %  faster\n"
        "tree iteration      +1.7   +0.6 %  inside noise\n"
        "malloc              0.00    0.0 %  no difference beyond 1 %\n"
        "total              -98.3  -11.8 %  faster"
    )
    assert max(cell_len(line) for line in text.splitlines()) <= 60


@pytest.mark.parametrize("width", [50, 60, 72, 80, 100, 160])
def test_effect_interval_and_p_are_there_at_every_width(width: int) -> None:
    """The numbers that people quote, in one line for every row."""
    lines = render_comparison(ComparisonReport(sample_comparison()), TerminalStyle(width)).splitlines()
    quoted = {
        "SHA-256": ("-100", "[-110, -90]", "0.0003"),
        "tree iteration": ("+1.7", "[-3.4, +6.7]", "0.61"),
        "malloc": ("0.00", "[-0.50, +0.50]", "1"),
        "total": ("-98.3", "[-106.0, -91.0]", "0.0001"),
        "wall": ("-100.0", "[-105.0, -95.0]", "0.0004"),
        "rate": ("+0.30", "[+0.20, +0.40]", "0.010"),
    }
    for name, numbers in quoted.items():
        rows = [line for line in lines if line.startswith(f"{name} ")]
        assert any(all(f" {number}" in line for number in numbers) for line in rows), (name, rows)
    assert max(cell_len(line) for line in lines) <= width


def test_a_limit_sums_up_the_rest() -> None:
    result = sample_comparison()
    rows, rest = shown_rows(result.candidates[0], 1)
    assert [row.name for row in rows] == ["SHA-256"]
    assert rest is not None
    assert rest.label == "other rows (2)"
    assert (rest.baseline, rest.candidate) == (325 * MS, pytest.approx(326.6667 * MS, rel=1e-6))
    text = render_comparison(ComparisonReport(result, limit=1), TerminalStyle(80))
    lines = text.split("\n\n")[1].splitlines()
    assert [line.split()[0] for line in lines] == ["category", "SHA-256", "other", "total"]
    assert shown_rows(result.candidates[0], 0) == (result.candidates[0].rows, None)
    assert shown_rows(result.candidates[0], 2) == (result.candidates[0].rows, None)


def test_one_run_per_arm_still_prints_the_difference() -> None:
    total = comparison_row("total", [100 * MS], [90 * MS], Verdict.TOO_FEW_RUNS, note="one run: no interval")
    text = render_comparison(ComparisonReport(comparison([], total)), TerminalStyle(100))
    assert text == (
        "cand against base: total -10.0 ms, -10.0 %: one run: no interval.\n"
        "cpu-clock by category, 1 run against 1 run: no interval, differences as measured\n"
        "\n"
        "category   base  cand  delta ms   change  verdict\n"
        "total     100.0  90.0     -10.0  -10.0 %  one run: no interval\n"
    )


def test_notes_of_rows_are_told_once() -> None:
    notes = {"BLS": "profile too thin", "SSZ": "profile too thin; new", "malloc": "profile too thin", "RPDS": ""}
    rows = [comparison_row(name, [1.0, 2.0, 3.0], [1.0, 2.0, 3.0], note=note) for name, note in notes.items()]
    total = comparison_row("total", [1.0, 2.0, 3.0], [1.0, 2.0, 3.0])
    text = render_comparison(ComparisonReport(comparison(rows, total)), TerminalStyle(100))
    assert "\n\nBLS, malloc: profile too thin\nSSZ: profile too thin; new\n" in text


def test_verdicts_are_colored_only_on_request() -> None:
    report = ComparisonReport(sample_comparison())
    assert "\x1b[32mfaster" in render_comparison(report, TerminalStyle(100, color=True))
    assert "\x1b" not in render_comparison(report, TerminalStyle(100, color=False))


@pytest.mark.parametrize("width", [60, 100])
def test_hostile_arm_and_row_names(width: int) -> None:
    hostile = "a\x1b[2J\n[red]\udcff" * 8
    row = comparison_row(hostile, [1.0, 2.0, 3.0], [1.0, 2.0, 3.0], label=hostile)
    total = comparison_row("total", [1.0, 2.0, 3.0], [1.0, 2.0, 3.0])
    text = render_comparison(ComparisonReport(comparison([row], total, names=(hostile, hostile))), TerminalStyle(width))
    assert "\x1b" not in text
    text.encode("utf-8")
    table = text.split("\n\n")[1].splitlines()
    assert len(table) == 3
    assert max(cell_len(line) for line in table) <= width
