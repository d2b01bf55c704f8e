"""Below a table of groups: the categories that each consists of."""

from __future__ import annotations

from dataclasses import replace

import pytest

from profiler.analysis.attribution.aggregate import merge_runs, run_tables
from profiler.analysis.attribution.owners import owner_cells
from profiler.model.costs import ArmCosts, OwnerCell
from reports.arm_lines import breakdown_lines
from reports.arm_report import ArmReport
from support.attribution import attributed, rules
from support.profile_from_text import profile_from_text
from support.report_values import MS, arm_costs, cost_table, no_intervals

GROUPS = {"SHA-256": "hashing", "Keccak": "hashing", "memmove": "memory", "copying": "memory", "walk": "state"}
CELLS = (
    OwnerCell("SHA-256", "SHA-256", 40 * MS),
    OwnerCell("Keccak", "Keccak", 20 * MS),
    OwnerCell("memmove", "walk", 12 * MS),
    OwnerCell("memmove", "SHA-256", 3 * MS),
    OwnerCell("walk", "walk", 15 * MS),
    OwnerCell("alone", "alone", 10 * MS),
)


def costs(view: str) -> ArmCosts:
    rows = cost_table({"hashing": [60], "memory": [15], "state": [15], "alone": [10]}, "group")
    return replace(arm_costs([rows], owners=CELLS), view=view, groups=GROUPS)


@pytest.mark.parametrize(
    ("view", "lines"),
    [
        ("leaf", ["hashing 60.0 %: 40.0 SHA-256, 20.0 Keccak", "memory 15.0 %: 15.0 memmove", "state 15.0 %: 15.0 walk"]),
        ("owner", ["hashing 63.0 %: 43.0 SHA-256, 20.0 Keccak", "state 27.0 %: 27.0 walk"]),
    ],
)
def test_categories_of_each_group_in_points_of_the_total(view: str, lines: list[str]) -> None:
    assert breakdown_lines(ArmReport(costs(view), "group", no_intervals("group"))) == lines


def test_many_categories_are_summed_up() -> None:
    cells = tuple(OwnerCell(f"c{n}", f"c{n}", (10 - n) * MS) for n in range(7))
    whole = replace(costs("leaf"), owners=cells, groups={f"c{n}": "g" for n in range(7)})
    (line,) = breakdown_lines(ArmReport(whole, "group", no_intervals("group")))
    assert line.startswith("g 49.0 %: 10.0 c0, 9.0 c1, ")
    assert line.endswith(" more categories")


def test_groups_add_up_to_their_table() -> None:
    """What the rows say and what the lines say are the same sums."""
    rule_set = rules(
        "[[rule]]\ncategory = 'a'\ngroup = 'g'\nfunction = '^a'\n[[rule]]\ncategory = 'b'\ngroup = 'g'\nfunction = '^b'\n"
        "passthrough = true\n[[rule]]\ncategory = 'c'\ngroup = 'h'\nfunction = '^c'\n"
    )
    run = attributed(profile_from_text("weight  5  7  11\n---\n main  c1  main\n a1  b1  x\n").symbolized(), rule_set)
    tables = run_tables(run, ("group",), "owner")
    group_table = merge_runs("group", [tables["group"]])
    whole = replace(arm_costs([group_table], owners=owner_cells(run)), view="owner", groups={"a": "g", "b": "g", "c": "h"})
    assert dict(zip(group_table.names, group_table.self_weight[:, 0].tolist(), strict=True)) == {"other": 11, "h": 7, "g": 5}
    assert breakdown_lines(ArmReport(whole, "group", no_intervals("group"))) == ["h 30.4 %: 30.4 c", "g 21.7 %: 21.7 a"]
