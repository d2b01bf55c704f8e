"""Watched processes: every value with the name of the process that it is of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from profiler.analysis.comparison.compare import CompareOptions, compare_arms
from profiler.model.costs import ArmCosts
from profiler.model.run import RunMode
from reports.comparison_report import ComparisonReport
from reports.markdown import render_comparison_markdown
from reports.terminal_comparison import render_comparison
from reports.terminal_table import TerminalStyle
from support.arms import Place, arm, infos, with_times

MS = 1_000_000
# Published means of eight nodes, in ms.
THIN, FAT = (8.997, 9.026, 9.036, 9.018), (8.791, 8.822, 8.855, 8.875)


def watched(variant: str, nodes: Sequence[str], means: Sequence[float], host: str = "h1") -> ArmCosts:
    runs = infos(variant, len(nodes), Place("devnet", host, RunMode.PLAIN))
    named = [replace(info, identity=replace(info.identity, instance=node)) for info, node in zip(runs, nodes, strict=True)]
    timed = with_times(named, [10 * MS] * len(nodes), slot=[mean * MS for mean in means])
    return arm(variant, {}, infos=(), plain=timed)


def rendered(baseline: ArmCosts, candidate: ArmCosts) -> tuple[str, str]:
    """For the terminal, white space as single blanks, and Markdown."""
    arms = baseline, candidate
    report = ComparisonReport(compare_arms(baseline, [candidate], CompareOptions(metrics=("slot",))), arms, 8)
    return " ".join(render_comparison(report, TerminalStyle(200)).split()), render_comparison_markdown(report)


def test_nodes_of_each_build() -> None:
    terminal, markdown = rendered(watched("thin", ("n3", "n1", "n2", "n4"), THIN), watched("fat", "efgh", FAT))
    # Sorted by name.
    for shown in (terminal, markdown):
        assert "n1 9,026.0, n2 9,036.0, n3 8,997.0, n4 9,018.0" in shown
        assert "e 8,791.0, f 8,822.0, g 8,855.0, h 8,875.0" in shown
        assert "4 processes (4 windows) against 4 (4), Welch t" in shown
    assert "slot µs of thin: n1" in terminal
    # Eight values fall into two groups of four in 70 ways, and no two of them are further apart: p = 2 / 70.
    assert "- 9.1 standard errors apart, no overlap, permutation p 0.029" in markdown


def test_one_name_on_two_hosts() -> None:
    terminal, markdown = rendered(watched("thin", ("bn", "x"), THIN[:2], "h1"), watched("fat", ("bn", "y"), FAT[:2], "h2"))
    for shown in (terminal, markdown):
        assert "bn on h1 " in shown
        assert "bn on h2 " in shown
        assert "x 9,026.0" in shown


@pytest.mark.parametrize("hostile", ["<script>", "@user", "a|b"])
def test_names_of_processes_are_safe(hostile: str) -> None:
    _, markdown = rendered(watched("thin", (hostile, "x"), THIN[:2]), watched("fat", ("f", "g"), FAT[:2]))
    assert f"{hostile} 8" not in markdown
