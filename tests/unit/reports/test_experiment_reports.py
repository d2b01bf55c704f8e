"""An experiment in every format: hand-written values, hostile names, limits, and what redaction takes out."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from itertools import product
from statistics import fmean, stdev

import jsonschema
import pytest

from profiler.analysis.comparison.compare import CompareOptions, compare_arms
from profiler.analysis.comparison.control import ArmPair, against_control
from profiler.analysis.comparison.gain import gain_attribution
from profiler.analysis.comparison.ladder import ladder
from profiler.analysis.comparison.per_unit import condition_per_unit, control_per_unit
from profiler.analysis.comparison.power import power_table
from profiler.model.comparison import Verdict
from profiler.model.costs import ArmCosts
from profiler.model.experiment import (
    BuildCost,
    ConditionFacts,
    Design,
    Direction,
    ExperimentRecord,
    MetricFacts,
    SectionSize,
    VariantFacts,
)
from profiler.model.experiment_result import (
    Agreement,
    ComposedComparison,
    ComposedRow,
    ConditionResult,
    ExperimentPower,
    ExperimentResult,
    MetricAgreement,
)
from profiler.model.interval import Interval
from profiler.model.run import RunMode
from reports.composed_report import composed_table
from reports.experiment_report import ExperimentReport
from reports.experiment_tables import (
    agreement_line,
    build_lines,
    bytes_text,
    control_table,
    gain_table,
    ladder_table,
    power_text_table,
    variant_table,
)
from reports.experiment_wording import condition_title, design_line, headline
from reports.json_experiment import render_experiment_json, render_power_json
from reports.markdown_experiment import render_experiment_markdown, render_power_markdown
from reports.markdown_text import LEFT_OUT
from reports.plots.experiment_plots import experiment_plots
from reports.quantities import Scale, probability
from reports.redact import redacted
from reports.terminal_experiment import render_experiment, render_power
from reports.terminal_table import TerminalStyle
from support import report_schemas
from support.arms import Place, arm, infos, with_times

MS = 1_000_000
S = 1000 * MS
HOSTILE = "a|b`<script>@user\x1b$"
BASE = {"hash": [300, 304, 297, 301], "tree": [200, 203, 199, 201]}
CAND = {"hash": [210, 215, 208, 211], "tree": [201, 202, 200, 199]}
LAST = {"hash": [209, 214, 209, 211], "tree": [151, 152, 150, 149]}
CONTROL = {"hash": [100, 102, 99, 101], "tree": [199, 203, 200, 201]}


def costs(name: str, rows: dict[str, list[int]]) -> ArmCosts:
    totals = [sum(values) * 2 * MS for values in zip(*rows.values(), strict=True)]
    plain = with_times(infos(name, 4, Place(mode=RunMode.PLAIN)), totals, epoch=[float(total) for total in totals])
    return arm(name, {row: [value * MS for value in values] for row, values in rows.items()}, plain=plain)


def record(**changes: object) -> ExperimentRecord:
    made = ExperimentRecord(
        name="skip-slots",
        design=Design.INTERLEAVED,
        runs=4,
        seed=7,
        baseline="base",
        command=("lcli",),
        variants=(
            VariantFacts(
                "base", size_bytes=1_900_000_000, build=BuildCost(("cargo",), 90_000_000_000, 170_000_000_000, 3_200_000)
            ),
            VariantFacts("vecmap", note="VecMap", rebuild=BuildCost(("cargo",), 2 * S, 1, 1, "lib.rs: 'x' appended")),
            VariantFacts("lockfree", note="no locks"),
        ),
        conditions=(ConditionFacts("full"), ConditionFacts("partial", ("--partial",), is_control=True)),
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def experiment(made: ExperimentRecord | None = None) -> ExperimentReport:
    options = CompareOptions()
    made = made or record()
    full = [costs("base@full", BASE), costs("vecmap@full", CAND), costs("lockfree@full", LAST)]
    partial = [costs(f"{name}@partial", CONTROL) for name in ("base", "vecmap", "lockfree")]
    conditions = tuple(
        condition_per_unit(
            ConditionResult(
                name,
                compare_arms(arms[0], arms[1:], options),
                tuple(gain_attribution(arms[0], candidate, "category") for candidate in arms[1:]),
                ladder(arms, options, made.primary, ("VecMap", "no locks")),
            ),
            made.per,
        )
        for name, arms in (("full", full), ("partial", partial))
    )
    control = against_control(ArmPair("full", full[0], full[1]), ArmPair("partial", partial[0], partial[1]), "category", 0.01)
    result = ExperimentResult(
        session="s1",
        started_at="2026-03-01T10:00:00+00:00",
        record=made,
        conditions=conditions,
        controls=(control_per_unit(control, made.per),),
        repeated=("base@full, round 2, plain: disturbed: 1.3 CPUs were busy with other work",),
    )
    return ExperimentReport(result, (*full, *partial), 8)


def test_builds_and_what_they_cost() -> None:
    shown = variant_table(record())
    assert shown.headers == ("variant", "note", "size", "build", "build CPU", "build memory", "rebuild")
    assert shown.rows == (
        ("base (baseline)", "", "1.9 GB", "90.00 s", "170.00 s", "3.2 MB", ""),
        ("vecmap", "VecMap", "", "", "", "", "2,000.0 ms"),
        ("lockfree", "no locks", "", "", "", "", ""),
    )
    earlier = VariantFacts("base", build=BuildCost(("cargo",), 40 * MS, 1, 1, "none: an earlier build was there"))
    assert variant_table(record(variants=(earlier,))).rows[0][1] == "40.0 ms (incremental)"
    assert [bytes_text(size) for size in (0, 12, 1500, 2_500_000)] == ["", "12 B", "1.5 kB", "2.5 MB"]


@pytest.mark.parametrize(
    ("made", "command"),
    [
        (record(plan_path="plans/skip slots.toml"), "slotscope experiment run 'plans/skip slots.toml'"),
        (record(plan_path="devnet.toml", is_over_agents=True), "slotscope experiment run devnet.toml --server URL"),
    ],
)
def test_how_to_repeat_it_is_a_command_that_can_be_typed(made: ExperimentRecord, command: str) -> None:
    """An experiment over agents is nothing that this machine could run by itself."""
    assert f"\n{command}\n" in render_experiment_markdown(experiment(made))


def test_the_primary_metric_is_the_headline() -> None:
    report = experiment(record(primary="epoch"))
    condition = report.result.conditions[0]
    line = headline(condition, condition.comparison.candidates[0], report.result.record)
    # Twice the sums of the rows, on average over the four runs: 2 x 1646 / 4 against 2 x 2005 / 4.
    assert line.startswith("vecmap@full: epoch -179.5 ms [")
    assert line.endswith("faster")
    assert condition_title(report.result.conditions[1], report.result.record) == "partial (--partial), the control"


def test_shares_add_up_and_the_rest_is_summed() -> None:
    gain = experiment().result.conditions[0].gains[0]
    whole = gain_table(gain, Scale("ms", MS, 1), 0)
    assert [row[0] for row in whole.rows] == ["hash", "tree"]
    assert whole.rows[0][1] == "-89.5"
    assert whole.rows[0][2] in ("99.7 %", "100 %", "99.9 %", "100.0 %")
    many = replace(gain, rows=tuple(replace(gain.rows[0], label=f"r{i}", share=0.25) for i in range(4)))
    cut = gain_table(many, Scale("ms", MS, 1), 2)
    assert [row[0] for row in cut.rows] == ["r0", "r1", "other (2)"]
    assert cut.rows[2][1:] == ("-179.0", "50 %", "")


def test_agreement_is_told_with_what_it_means() -> None:
    agreed = MetricAgreement("epoch", -0.121, -0.123, 0.002, Interval(-0.01, 0.02), Agreement.AGREE)
    assert agreement_line(agreed) == (
        "epoch: the profile changed by -12.1 %, the metric by -12.3 % (geometric means): "
        "they agree within what these runs can tell"
    )
    differing = replace(
        agreed, agreement=Agreement.DIFFER, difference_interval=Interval(0.05, 0.07), meaning="epoch fell further"
    )
    # e ** 0.05 = 1.0513 and e ** 0.07 = 1.0725
    assert agreement_line(differing).endswith("+5.1 to +7.3 % apart: epoch fell further")


def test_factors_far_apart_are_no_difference_of_logarithms() -> None:
    """The profile grew by the factor 1.069 and the metric by 2.012: 1.069 / 2.012 = 0.531, which lies between 1/2 and 3/5."""
    halves = Interval(math.log(1 / 2), math.log(3 / 5))
    doubled = MetricAgreement("hash", 0.069, 1.012, math.log(1.069 / 2.012), halves, Agreement.DIFFER, "hash rose further")
    assert agreement_line(doubled).endswith(", -50.0 to -40.0 % apart: hash rose further")


@pytest.mark.parametrize(
    ("design", "runs", "said"),
    [
        (Design.INTERLEAVED, 1, ", 1 round, "),
        (Design.INTERLEAVED, 3, ", 3 rounds, "),
        (Design.PARALLEL, 2, ", 2 windows, "),
        (Design.CROSSOVER, 1, ", 1 window under each variant, "),
        (Design.CROSSOVER, 2, ", 2 windows under each variant, "),
    ],
)
def test_the_design_is_told_with_its_repetitions(design: Design, runs: int, said: str) -> None:
    assert said in design_line(experiment(record(design=design, runs=runs)).result)


def test_what_is_divided_by_the_units_of_a_run_and_what_is_not() -> None:
    line = design_line(experiment(record(per=32.0)).result)
    assert line.endswith("times are per unit of work, 32 of which are in a run; metrics are as the program reports them")


def test_steps() -> None:
    found = experiment().result.conditions[0].ladder
    assert found is not None
    table = ladder_table(found, 0.01)
    assert [row[0] for row in table.rows] == ["base@full", "vecmap@full (largest step)", "lockfree@full"]
    assert [row[2] for row in table.rows] == ["501.2", "411.5", "361.2"]


@pytest.mark.parametrize("width", [60, 100, 160])
def test_terminal_tables_fit(width: int) -> None:
    text = render_experiment(experiment(), TerminalStyle(width))
    assert max(map(len, text.splitlines())) <= width
    assert "made again: base@full, round 2, plain: disturbed" in " ".join(text.split())


@pytest.mark.parametrize("width", [60, 80, 100])
def test_a_narrow_terminal_loses_no_number_of_a_table(width: int) -> None:
    report = experiment(record(primary="epoch"))
    wide = render_experiment(report, TerminalStyle(300))
    narrow = render_experiment(report, TerminalStyle(width))
    words = set(narrow.split())
    for title in ("step by step\n", "vecmap@full: its change under full less its change under partial\n"):
        table = wide.partition(title)[2].partition("\n\n")[0]
        assert set(table.split()) <= words, set(table.split()) - words
    candidate = report.result.conditions[0].comparison.candidates[0]
    for row in (*candidate.rows, candidate.total):
        lines = [line for line in narrow.splitlines() if line.startswith(f"{row.label} ")]
        assert any("[" in line and probability(row.p_adjusted) in line for line in lines), (row.label, lines)


def test_times_per_unit_of_work() -> None:
    whole, per_slot = experiment().result, experiment(record(per=32.0)).result
    for first, second in zip(whole.conditions, per_slot.conditions, strict=True):
        for one, other in zip(first.comparison.candidates, second.comparison.candidates, strict=True):
            assert other.total.delta == pytest.approx(one.total.delta / 32)
            assert other.total.relative == one.total.relative
            assert other.rows[0].baseline.mean == pytest.approx(one.rows[0].baseline.mean / 32)
            named = {metric.row.name: metric.row for metric in one.metrics}
            for metric in other.metrics:
                scale = 32 if metric.row.name in ("wall", "user", "system") else 1
                assert metric.row.delta == pytest.approx(named[metric.row.name].delta / scale)
    assert per_slot.controls[0].total.difference == pytest.approx(whole.controls[0].total.difference / 32)


def test_json_says_all_of_it() -> None:
    document = json.loads(render_experiment_json(experiment().result))
    assert document["schema"] == "slotscope.experiment/1"
    assert document["experiment"]["variants"][1]["rebuild"]["edit"] == "lib.rs: 'x' appended"
    full = document["conditions"][0]
    assert full["candidates"][0]["total"]["delta"] == -359 / 4 * MS
    assert sum(row["share"] for row in full["gains"][0]["rows"]) == pytest.approx(1)
    assert full["ladder"]["largest"] == "vecmap@full"
    assert document["controls"][0]["control"] == "partial"


def test_json_rows_say_how_far_apart_arms_are() -> None:
    """sigma, overlap and the exact permutation p of seven rounds and two rows, counted here."""
    base = {"hash": [300, 304, 297, 301, 299, 303, 300], "tree": [200, 203, 199, 201, 198, 202, 200]}
    cand = {"hash": [281, 283, 280, 282, 279, 285, 281], "tree": [199, 205, 199, 200, 200, 201, 199]}
    arms = [
        arm(name, {row: [v * MS for v in values] for row, values in rows.items()}) for name, rows in (("a", base), ("b", cand))
    ]
    condition = ConditionResult("full", compare_arms(arms[0], arms[1:], CompareOptions()), ())
    result = ExperimentResult("s1", "2026-03-01T10:00:00+00:00", record(), (condition,))
    candidate = json.loads(render_experiment_json(result))["conditions"][0]["candidates"][0]
    jsonschema.validate(candidate["rows"], {"type": "array", "items": report_schemas.ROW})
    rows = {row["name"]: row for row in candidate["rows"]}
    for name in base:
        differences = [after - before for before, after in zip(base[name], cand[name], strict=True)]
        assert rows[name]["sigma"] == pytest.approx(abs(fmean(differences)) / (stdev(differences) / 7**0.5))
        flipped = [
            abs(sum(sign * d for sign, d in zip(signs, differences, strict=True))) for signs in product((1, -1), repeat=7)
        ]
        assert rows[name]["permutation_p"] == sum(total >= abs(sum(differences)) for total in flipped) / 128
    # -19, -21, -17, -19, -20, -18, -19: mean -19, sum of squares 10; every one has the same sign.
    assert rows["hash"]["sigma"] == pytest.approx(19 / (10 / 6 / 7) ** 0.5)
    assert (rows["hash"]["no_overlap"], rows["hash"]["permutation_p"]) == (True, 2 / 128)
    assert rows["tree"]["no_overlap"] is False


def test_json_rows_of_few_runs_have_no_permutation_p() -> None:
    """Four rounds: no sign flip is rarer than 2 of 16."""
    rows = json.loads(render_experiment_json(experiment().result))["conditions"][0]["candidates"][0]["rows"]
    assert {row["permutation_p"] for row in rows} == {None}


def test_power_in_every_format() -> None:
    table = power_table(costs("base", BASE), costs("cand", CAND), "category", 0.01, (4, 16))
    power = ExperimentPower("s1", "epoch", (table,))
    assert json.loads(render_power_json(power))["comparisons"][0]["runs"] == [4, 16]
    assert [row[0] for row in power_text_table(table, 0).rows][:3] == ["hash", "tree", "total"]
    assert "| hash |" in render_power_markdown(power, 8)
    assert "4 runs" in render_power(power, 8, TerminalStyle(100))


def test_markdown_is_safe_and_within_its_limit() -> None:
    plan_text = "\n".join(f"# {HOSTILE} {number}" for number in range(20_000))
    variants = (VariantFacts("base", note=HOSTILE, revision=HOSTILE), *record().variants[1:])
    text = render_experiment_markdown(experiment(record(name=HOSTILE, variants=variants, plan_text=plan_text)))
    assert len(text) <= 60_000
    shown = text.partition("<details>")[0]
    assert "<script>" not in shown
    assert "\x1b" not in text
    assert "@user" not in shown


def test_redaction() -> None:
    text = "host node-7.lan, node-7.lan: /home/ann/state.ssz /root/x /roots/y /srv/people/bob/z /var/home"
    hidden = redacted(text, ("node-7.lan",), ("/srv/people/bob",))
    assert hidden == "host host-1, host-1: ~/state.ssz ~/x /roots/y ~/z /var/home"
    options = "cc -L/root/lib -I/home/alice/a -I/srv/people/bob/x `-L/root/y` /data/root/z x-I/root/w"
    expected = "cc -L~/lib -I~/a -I~/x `-L~/y` /data/root/z x-I/root/w"
    assert redacted(options, (), ("/srv/people/bob",)) == expected
    assert redacted("a node is no host: nodes, node", ("node",), ()) == "a host-1 is no host: nodes, host-1"


def test_plots_are_the_same_bytes_again() -> None:
    first, second = (experiment_plots(experiment().result) for _ in range(2))
    assert [plot.name for plot in first] == [
        "runs-full",
        "waterfall-vecmap@full",
        "waterfall-lockfree@full",
        "ladder-full",
        "runs-partial",
        "waterfall-vecmap@partial",
        "waterfall-lockfree@partial",
        "ladder-partial",
    ]
    for one, other in zip(first, second, strict=True):
        assert one.svg == other.svg
        assert one.png == other.png
        assert one.png.startswith(b"\x89PNG")
        assert b"<svg" in one.svg


@pytest.mark.parametrize(("per", "said", "unsaid"), [(1.0, "per run", "per unit"), (32.0, "per unit of work", "per run")])
def test_plots_say_what_times_are_per(per: float, said: str, unsaid: str) -> None:
    plots = {plot.name: plot.svg.decode() for plot in experiment_plots(experiment(record(per=per)).result)}
    for name in ("runs-full", "waterfall-vecmap@full", "ladder-full"):
        assert f"CPU time {said}" in plots[name]
        assert unsaid not in plots[name]
    about_metric = record(per=per, primary="epoch", metrics=(MetricFacts("epoch", Direction.LOWER, "regex"),))
    runs = experiment_plots(experiment(about_metric).result)[0].svg.decode()
    assert "epoch ms, one dot a run" in runs


def test_beyond_the_limit_rows_are_added_up_and_not_dropped() -> None:
    control = experiment().result.controls[0]
    many = replace(
        control, rows=tuple(replace(control.rows[0], label=f"r{i}", change=2.0 * MS, difference=1.0 * MS) for i in range(5))
    )
    shown = control_table(many, 3).rows
    assert [row[0] for row in shown[:5]] == ["r0", "r1", "r2", "other (2)", "total"]
    assert (float(shown[3][1]), float(shown[3][3])) == (4.0, 2.0)
    assert [row[0] for row in control_table(many, 4).rows[:6]] == ["r0", "r1", "r2", "r3", "r4", "total"]
    power = power_table(costs("base", BASE), costs("cand", CAND), "category", 0.01, (4, 16))
    wide = replace(power, rows=tuple(replace(power.rows[0], label=f"r{i}", mean=3.0 * MS) for i in range(5)))
    rows = power_text_table(wide, 3).rows
    assert [row[0] for row in rows[:5]] == ["r0", "r1", "r2", "other (2)", "total"]
    assert rows[3][1:] == ("6.0", "", "", "", "")


def test_sections_that_differ_from_the_baseline_s() -> None:
    base = VariantFacts("base", sections=(SectionSize(".text", 61_440), SectionSize(".rodata", 8_000)))
    thin = VariantFacts("thin", sections=(SectionSize(".text", 59_440), SectionSize(".rodata", 8_000), SectionSize(".bss", 64)))
    again = replace(thin, name="base-again", control_of="base")
    made = record(variants=(base, thin, again))
    assert build_lines(made) == [
        "thin: sections unlike base's: .text 59.4 kB (-2.0 kB), .bss 64 B (not among the largest there)"
    ]


def test_metrics_that_should_be_high_gain_by_rising() -> None:
    """Twice the sums of the rows fall by 179.5 ms more than in the control."""
    report = experiment(record(metrics=(MetricFacts("epoch", Direction.HIGHER, "regex"),)))
    control = report.result.controls[0]
    assert {row[0]: row[-1] for row in control_table(control, 0).rows}["epoch, ms"] == "gains more than the control"
    shown = {row[0]: row[-1] for row in control_table(control, 0, report.result.record.better_higher).rows}
    assert shown["epoch, ms"] == "gains less than the control"
    assert shown["total"] == "gains more than the control"
    assert "gains less than the control" in render_experiment_markdown(report)
    coloured = render_experiment(report, TerminalStyle(160, color=True))
    faster = [line for line in coloured.splitlines() if "mfaster" in line]
    for row, color in (("epoch ", "\x1b[31mfaster"), ("hash ", "\x1b[32mfaster")):
        of_row = [line for line in faster if line.startswith(row)]
        assert of_row
        assert all(color in line for line in of_row)


def test_composed_rows_beyond_the_limit_are_counted() -> None:
    """Their ratios do not add up, so no cell says what they make together."""
    row = ComposedRow("r", "r", 0.5, 0.8, 0.4, Interval(0.38, 0.42), 0.001, 0.001, Verdict.FASTER)
    composed = ComposedComparison("a", "b", "c", "category", (row,) * 5, row, ())
    table = composed_table(composed, 3, 0.01)
    assert [line[0] for line in table.rows] == ["r", "r", "r", "other (2)", "r"]
    assert set(table.rows[3][1:]) == {""}
    assert table.rows[0][-1] == "lower *", "what is counted need not be time"


def of_200_rows(name: str, place: int) -> ArmCosts:
    rows = range(200)
    return arm(name, {f"a::function_{row}": [(1000 + (7 * row * run * place) % 31) * MS for run in range(30)] for row in rows})


@pytest.mark.parametrize(("arms", "plan_lines"), [(2, 10), (4, 10), (4, 20_000), (12, 10)])
def test_markdown_of_two_hundred_rows_and_many_runs_is_short_enough(arms: int, plan_lines: int) -> None:
    """30 runs of 200 rows in every arm: 8 rows a table, the others summed up, and what is cut off is said to be."""
    names = ["base", *(f"variant-{number}" for number in range(1, arms))]
    made = [of_200_rows(name, place + 1) for place, name in enumerate(names)]
    comparison = compare_arms(made[0], made[1:], CompareOptions())
    gains = tuple(gain_attribution(made[0], candidate, "category") for candidate in made[1:])
    plan = "".join(f"# line {number} of a long plan\n" for number in range(plan_lines))
    facts = record(variants=tuple(VariantFacts(name) for name in names), conditions=(), plan_text=plan)
    result = ExperimentResult("s1", "2026-03-01T10:00:00+00:00", facts, (ConditionResult("", comparison, gains, None),))
    page = render_experiment_markdown(ExperimentReport(result, tuple(made), 8))
    assert len(page) <= 60_000
    assert page.count("<details>") == page.count("</details>") <= 1
    assert page.count("\n```") % 2 == 0, "every block of code that is begun is ended"
    assert LEFT_OUT in page
    tables = [block for block in page.split("\n\n") if block.startswith("| category |")]
    assert len(tables) in (arms - 1, page.count("### variant-"), page.count("### variant-") - 1)
    for cells in tables:
        assert 4 <= cells.count("function") <= 8
        assert cells.count("| other rows (") == 1
    assert page.splitlines()[2 : 2 + arms - 1] == [line for line in page.splitlines() if line.startswith("- **variant-")]
