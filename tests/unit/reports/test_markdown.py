"""Pull-request text: hand-written expectations, hostile names, and the length limit."""

from __future__ import annotations

import re

import pytest

from profiler.model.comparison import MetricComparison, Verdict
from profiler.model.costs import OtherFunction
from profiler.model.quality import ReportWarning
from reports.arm_report import ArmReport
from reports.comparison_report import ComparisonReport
from reports.markdown import render_comparison_markdown
from reports.markdown_report import render_report_markdown
from reports.markdown_text import LEFT_OUT, code_block, fitting, name, table, text
from support.report_values import MS, arm_costs, comparison, comparison_row, cost_table, no_intervals

HOSTILE = "a|b`c`<script>@user #12 [x](y)\x1b\n\udcff"


def test_names() -> None:
    assert name("tree hashing") == "tree hashing"
    assert name("a|b") == "<code>a&#124;b</code>"
    assert name("<T as X>::f") == "<code>&#60;T as X&#62;&#58;&#58;f</code>"
    assert name("@user") == "<code>&#64;user</code>"
    assert name("f_x`") == "<code>f&#95;x&#96;</code>"
    assert name("\x1b\udcff") == "<code>&#92;x1b&#92;xff</code>"
    assert name("n" * 500) == "n" * 78 + "..." + "n" * 78


def test_sentences() -> None:
    assert text("a|b *c* <d> e_f") == r"a\|b \*c\* &#60;d&#62; e\_f"
    assert text("see @user and #12") == "see @<!-- -->user and #<!-- -->12"


def test_tables_and_fences() -> None:
    assert table(("a", "b"), [("x", "1")], frozenset({0})) == "| a | b |\n| :-- | --: |\n| x | 1 |"
    assert code_block(["ls"]) == "```\nls\n```"
    assert code_block(["echo ```` x"]) == "`````\necho ```` x\n`````"


def test_fitting_says_when_something_is_left_out() -> None:
    assert fitting(["a" * 10, "b" * 10], 200) == ["a" * 10, "b" * 10]
    room = len(LEFT_OUT) + 2 + 12
    assert fitting(["a" * 10, "b" * 10], room) == ["a" * 10, LEFT_OUT]


def small_comparison() -> ComparisonReport:
    rows = [
        comparison_row(
            "SHA-256", [500 * MS, 510 * MS, 505 * MS], [400 * MS, 405 * MS, 410 * MS], Verdict.FASTER,
            delta_interval=(-110 * MS, -90 * MS), p=0.0003,
        ),
        comparison_row(
            "other", [95 * MS] * 3, [96 * MS] * 3, Verdict.UNDECIDED, (-2 * MS, 4 * MS), None, 0.5, 3 * MS, runs_needed=12
        ),
    ]  # fmt: skip
    total = comparison_row(
        "total", [600 * MS] * 3, [501 * MS] * 3, Verdict.FASTER, delta_interval=(-104 * MS, -94 * MS), p=0.0002
    )
    wall = comparison_row("wall", [70 * MS] * 3, [60 * MS] * 3, Verdict.FASTER, (-11 * MS, -9 * MS), (-0.16, -0.13), p=0.001)
    result = comparison(rows, total, [MetricComparison("ns", wall)], warnings=(ReportWarning("kernel", "kernels differ"),))
    arms = (arm_costs([cost_table({"other": [1]})], name="base"), arm_costs([cost_table({"other": [1]})], name="cand"))
    return ComparisonReport(result, arms)


def test_a_small_comparison() -> None:
    assert render_comparison_markdown(small_comparison()) == (
        "### cand against base\n"
        "\n"
        r"**cand against base: total -99.0 ms \[-104.0, -94.0\], -16.5 %, p = 0.0002: faster. "
        r"Largest change: SHA-256 -100 ms \[-110, -90\], -19.8 %.**" + "\n"
        "\n"
        "cpu-clock by category; 3 runs against 3 runs, paired t, 2 rows tested, p adjusted by Holm, "
        "intervals 95 % unadjusted.\n"
        "\n"
        "| category | base ms | cand ms | delta ms | 95 % interval | change | p adjusted | verdict |\n"
        "| :-- | --: | --: | --: | --: | --: | --: | :-- |\n"
        "| SHA-256 | 505.0 | 405.0 | -100 | [-110, -90] | -19.8 % | 0.0003 | **faster** |\n"
        "| other | 95.0 | 96.0 | +1.0 | [-2.0, +4.0] | +1.1 % | 0.50 | "
        "inside noise (visible from ±3.0 ms, 12 runs per arm to decide the effect seen) |\n"
        "| **total** | 600.0 | 501.0 | -99.0 | [-104.0, -94.0] | -16.5 % | 0.0002 | **faster** |\n"
        "\n"
        "| time or metric | unit | base | cand | delta | 95 % interval | change | p (not adjusted) | verdict |\n"
        "| :-- | :-- | --: | --: | --: | --: | --: | --: | :-- |\n"
        "| wall | ms | 70.0 | 60.0 | -10.0 | [-11.0, -9.0] | -14.3 % [-16.0, -13.0] % | 0.0010 | **faster** |\n"
        "\n"
        "- base: quality ok: 1,000 samples, 100.0 % complete stacks\n"
        "- cand: quality ok: 1,000 samples, 100.0 % complete stacks\n"
        "\n"
        "- **warning** kernel: kernels differ\n"
        "\n"
        "<details><summary>Values of each run, builds and commands</summary>\n"
        "\n"
        "**total** (ms)\n\n- base: 600.0, 600.0, 600.0\n- cand: 501.0, 501.0, 501.0\n"
        "\n"
        "**wall** (ms)\n\n- base: 70.0, 70.0, 70.0\n- cand: 60.0, 60.0, 60.0\n"
        "\n"
        "**SHA-256** (ms)\n\n- base: 500.0, 510.0, 505.0\n- cand: 400.0, 405.0, 410.0\n"
        "\n"
        "**other** (ms)\n\n- base: 95.0, 95.0, 95.0\n- cand: 96.0, 96.0, 96.0\n"
        "\n" + arm_facts("base") + "\n\n" + arm_facts("cand") + "\n\n</details>\n"
    )


def arm_facts(arm: str) -> str:
    return (
        f"**{arm}**\n\n- build ID 00aabb\n- revision abc123\n- toolchain GNU C++17 12.2.0\n- host node-1, Some CPU, 6.1.0\n"
        "- event cpu-clock, rules ethereum+native\n\n```\n/opt/bin/epoch --count '4 096'\n```"
    )


def test_rows_beyond_the_limit_are_summed_up() -> None:
    rows = [comparison_row(f"row {number}", [10 * MS] * 3, [9 * MS] * 3) for number in range(12)]
    total = comparison_row("total", [120 * MS] * 3, [108 * MS] * 3)
    shown = render_comparison_markdown(ComparisonReport(comparison(rows, total), limit=8))
    first_table = shown.split("\n\n")[3].splitlines()
    assert len(first_table) == 2 + 8 + 1 + 1
    assert first_table[-2] == "| other rows (4) | 40.0 | 36.0 | -4.0 |  |  |  |  |"


def test_hostile_names_stay_in_their_cells() -> None:
    rows = [comparison_row(HOSTILE, [1.0 * MS] * 3, [2.0 * MS] * 3, note=HOSTILE)]
    total = comparison_row("total", [1.0 * MS] * 3, [2.0 * MS] * 3)
    result = comparison(rows, total, warnings=(ReportWarning("w", HOSTILE, HOSTILE),), names=(HOSTILE, "cand"))
    shown = render_comparison_markdown(ComparisonReport(result, (arm_costs([cost_table({"other": [1]})], name=HOSTILE),)))
    shown.encode("utf-8")
    assert "\x1b" not in shown
    assert "<script>" not in shown
    assert not re.search(r"@user|#12", re.sub(r"&#\d+;", "", shown))
    rows_of_table = [line for line in shown.splitlines() if line.startswith("| ")]
    assert len(rows_of_table) == 4
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in rows_of_table} == {9}


@pytest.mark.parametrize(("rows", "is_cut"), [(50, False), (2000, True)])
def test_never_longer_than_a_pull_request_takes(rows: int, is_cut: bool) -> None:
    long_name = "crate::module::Type<" + "x" * 300 + ">::function_"
    many = [comparison_row(f"{long_name}{number}", [1.0 * MS] * 30, [2.0 * MS] * 30) for number in range(rows)]
    total = comparison_row("total", [rows * MS] * 30, [2 * rows * MS] * 30)
    shown = render_comparison_markdown(ComparisonReport(comparison(many, total), limit=8))
    assert len(shown) <= 60_000
    assert shown.rstrip().endswith("</details>")
    assert (LEFT_OUT in shown) is is_cut


def test_without_a_limit_the_text_is_still_short_enough() -> None:
    many = [comparison_row(f"category number {number}", [1.0 * MS] * 3, [2.0 * MS] * 3) for number in range(3000)]
    total = comparison_row("total", [3000 * MS] * 3, [6000 * MS] * 3)
    assert len(render_comparison_markdown(ComparisonReport(comparison(many, total)))) <= 60_000


def test_report_of_one_arm() -> None:
    costs = arm_costs(
        [cost_table({"SHA-256": [60], "other": [40]})],
        other_functions=(OtherFunction("app::loop", 40 * MS, 'function = "^app::loop$"'),),
    )
    assert render_report_markdown(ArmReport(costs, "category", no_intervals())) == (
        "- base: 100.0 ms, 1 run, event cpu-clock\n"
        "- by category, leaf view, rules ethereum+native\n"
        "- quality ok: 1,000 samples, 100.0 % complete stacks\n"
        "\n"
        "| category | self ms | total ms | share | 95 % interval | samples |\n"
        "| :-- | --: | --: | --: | --: | --: |\n"
        "| SHA-256 | 60.0 | 60.0 | 60.0 % |  | 60 |\n"
        "| other | 40.0 | 40.0 | 40.0 % |  | 40 |\n"
        "| **total** | 100.0 | 100.0 | 100.0 % |  | 100 |\n"
        "\n"
        "<details><summary>Heaviest functions of other, with a rule that would catch each</summary>\n"
        "\n"
        '```\n# 40.0 ms, 40.0 %: app::loop\nfunction = "^app::loop$"\n```\n'
        "\n"
        "</details>\n"
    )
