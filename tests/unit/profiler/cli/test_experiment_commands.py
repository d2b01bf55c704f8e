"""experiment show, power and the dry run over sessions of a few runs, with and without a profile."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import jsonschema
import pytest
from scipy import stats as scipy_stats

from profiler.cli.main import main
from profiler.experiment.experiment_session import DOCUMENT, encode_record
from profiler.model.experiment import ConditionFacts, Design, Direction, ExperimentRecord, MetricFacts, VariantFacts
from profiler.model.run import Metric, RunMode, RunOutcome
from profiler.store.records import SessionStart
from profiler.store.store import open_store
from support import report_schemas
from support.small_captures import SAMPLE_NS, small_capture, small_info

BASE, CAND = (100, 104, 97, 101), (80, 82, 79, 80)
PLAN = """
[experiment]
name = "epochs"
runs = 4
profile = "none"
command = ["{binary}", "-c", "true"]
[[variant]]
name = "base"
binary = "/bin/sh"
[[variant]]
name = "cand"
binary = "/bin/sh"
"""


@pytest.fixture(autouse=True)
def in_an_empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def experiment(
    profiled: bool,
    per: float = 1.0,
    counts: Sequence[tuple[float, ...]] = (BASE, CAND),
    primary: str = "epoch",
    direction: Direction = Direction.LOWER,
    conditions: tuple[ConditionFacts, ...] = (),
) -> None:
    """Every run has so many samples of 1 ms and a metric "epoch" of twice that; all wall times are 100 ms.  Under the second
    condition, and the third, runs have 20 samples more, and 40, and the candidates' changes are not there."""
    variants = ("base", "cand", "more")[: len(counts)]
    store = open_store(Path(".slotscope"), create=True)
    session = store.begin_session(SessionStart("2026-03-01T10:00:00+00:00", "h", ("epoch",), 1, has_rounds=True))
    record = ExperimentRecord(
        name="epochs",
        design=Design.INTERLEAVED,
        runs=len(counts[0]),
        seed=1,
        baseline="base",
        command=("epoch",),
        variants=tuple(map(VariantFacts, variants)),
        metrics=(MetricFacts("epoch", direction, "regex"),),
        primary=primary,
        per=per,
        conditions=conditions,
    )
    store.put_document(session, DOCUMENT, encode_record(record))
    arms = [
        (f"{variant}@{condition.name}" if condition else variant, in_condition(place, of_runs, counts[0]))
        for place, condition in enumerate(conditions or (None,))
        for variant, of_runs in zip(variants, counts, strict=True)
    ]
    for number in range(len(counts[0])):
        for label, of_runs in arms:
            plain = small_info(label, number, RunMode.PLAIN, session=session)
            metric = Metric("epoch", 2.0 * SAMPLE_NS * of_runs[number], "ns")
            store.add(small_capture({}, replace(plain, outcome=replace(plain.outcome, metrics=(metric,)))))
            if profiled:
                store.add(small_capture({"main/sha": int(of_runs[number])}, small_info(label, number, session=session)))
        store.finish_round(session, number)
    store.finish_session(session)


def in_condition(place: int, of_runs: tuple[float, ...], of_baseline: tuple[float, ...]) -> tuple[float, ...]:
    """Under all but the first condition without the change, and every second run of a candidate takes 1 sample more."""
    if not place:
        return of_runs
    is_baseline = of_runs == of_baseline
    return tuple(20 * place + count + (0 if is_baseline else number % 2) for number, count in enumerate(of_baseline))


def slotscope(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main([*arguments])
    shown = capsys.readouterr()
    return code, shown.out, shown.err


def found_in_half(effect: float, runs: int, differences: list[float]) -> float:
    """Power of the paired t test, were the noise of ``differences`` the true one."""
    deviation = scipy_stats.tstd(differences)
    critical = scipy_stats.t.ppf(0.975, runs - 1)
    return float(scipy_stats.nct.sf(critical, runs - 1, effect / deviation * runs**0.5))


def test_power_of_metrics_alone(capsys: pytest.CaptureFixture[str]) -> None:
    experiment(profiled=False)
    code, out, _ = slotscope(capsys, "experiment", "power", "--format", "json")
    assert code == 0
    (document,) = json.loads(out)["comparisons"]
    assert (document["test"], document["rows"], document["total"]) == ("paired t", [], None)
    assert document["promise"] == pytest.approx([0.78, 0.83])
    rows = {row["name"]: row for row in document["metrics"]}
    assert rows["epoch"]["mean"] == pytest.approx(2 * sum(BASE) / 4 * SAMPLE_NS)
    differences = [2.0 * SAMPLE_NS * (cand - base) for base, cand in zip(BASE, CAND, strict=True)]
    for runs, visible in zip(document["runs"], rows["epoch"]["visible"], strict=True):
        # Never less than would do if four runs told the noise exactly.
        assert found_in_half(visible, runs, differences) >= 0.8
    assert rows["epoch"]["visible"] == sorted(rows["epoch"]["visible"], reverse=True)


@pytest.mark.parametrize("format", ["table", "markdown"])
def test_power_of_metrics_alone_as_text(capsys: pytest.CaptureFixture[str], format: str) -> None:
    experiment(profiled=False)
    code, out, _ = slotscope(capsys, "experiment", "power", "--format", format)
    assert code == 0
    assert "epoch, ms" in out
    assert "total" not in out
    assert "sampling" not in out


def test_power_is_per_unit_of_work_as_the_experiment_is(capsys: pytest.CaptureFixture[str]) -> None:
    experiment(profiled=True, per=4)
    (document,) = json.loads(slotscope(capsys, "experiment", "power", "--format", "json")[1])["comparisons"]
    shown = json.loads(slotscope(capsys, "experiment", "show", "--format", "json")[1])["conditions"][0]["candidates"][0]
    assert document["total"]["mean"] == pytest.approx(sum(BASE) / 4 / 4 * SAMPLE_NS)
    assert document["total"]["mean"] == pytest.approx(shown["total"]["baseline"])
    means = {row["name"]: row["mean"] for row in document["metrics"]}
    assert means["wall"] == pytest.approx(100 / 4 * SAMPLE_NS)
    assert means["epoch"] == pytest.approx(2 * sum(BASE) / 4 * SAMPLE_NS)
    text = " ".join(slotscope(capsys, "experiment", "power")[1].split())
    assert "times are per unit of work, 4 of which are in a run" in text


CONDITIONS = (ConditionFacts("full"), ConditionFacts("partial", is_control=True))
MORE = (90, 96, 86, 90)


@pytest.mark.parametrize("profiled", [False, True])
def test_power_of_every_comparison(capsys: pytest.CaptureFixture[str], profiled: bool) -> None:
    """Two candidates under a condition and its control: four comparisons, and the two differences between the conditions."""
    experiment(profiled, counts=(BASE, CAND, MORE), conditions=CONDITIONS)
    document = json.loads(slotscope(capsys, "experiment", "power", "--format", "json")[1])
    jsonschema.validate(document, report_schemas.POWER)
    found = [(table["candidate"], table["control"]) for table in document["comparisons"]]
    arms = [f"{variant}@{condition}" for condition in ("full", "partial") for variant in ("cand", "more")]
    assert found == [*((arm, None) for arm in arms), ("cand@full", "partial"), ("more@full", "partial")]
    of_pair, of_control = (
        next(row["visible"][0] for row in document["comparisons"][place]["metrics"] if row["name"] == "epoch")
        for place in (0, 4)
    )
    held = [after - before for before, after in zip(BASE, in_condition(1, CAND, BASE), strict=True)]
    assert held == [20, 21, 20, 21]
    changes = [cand - base for base, cand in zip(BASE, CAND, strict=True)]
    # As the spread of the differences of differences is to that of the differences.
    spread = scipy_stats.tstd([change - off for change, off in zip(changes, held, strict=True)])
    assert of_control / of_pair == pytest.approx(spread / scipy_stats.tstd(changes))
    assert (document["comparisons"][4]["total"] is not None) == profiled
    for format in ("table", "markdown"):
        text = " ".join(slotscope(capsys, "experiment", "power", "--format", format)[1].split())
        # Markdown must not address anybody.
        text = text.replace("@<!-- -->", "@").replace("&#64;", "@")
        assert "cand@full less its change under partial" in text
        assert "cand@full less partial" in text
        # Once in the overview, once above its own table.
        assert text.count("more@partial") == 2


@pytest.mark.parametrize("format", ["table", "markdown", "json", "csv"])
def test_a_control_without_a_profile_is_shown(capsys: pytest.CaptureFixture[str], format: str) -> None:
    """-20.25 samples under the condition and 0.5 more under the control, on average; twice that in the metric."""
    experiment(profiled=False, counts=(BASE, CAND), conditions=CONDITIONS, per=2)
    code, out, err = slotscope(capsys, "experiment", "show", "--format", format)
    assert (code, err) == (0, "")
    if format == "json":
        (control,) = json.loads(out)["controls"]
        assert (control["rows"], control["total"]) == ([], None)
        (epoch,) = [row for row in control["metrics"] if row["name"] == "epoch"]
        assert epoch["difference"] == pytest.approx(2 * (-20.25 - 0.5) * SAMPLE_NS)
    elif format != "csv":
        assert "-41.5" in out


def test_dry_run_tells_every_comparison(capsys: pytest.CaptureFixture[str]) -> None:
    experiment(profiled=True, counts=(BASE, CAND, MORE), conditions=CONDITIONS)
    Path("plan.toml").write_text(PLAN)
    lines = slotscope(capsys, "experiment", "run", "plan.toml", "--dry-run")[1].splitlines()
    titles = [line[1:] for line in lines if line.startswith(" ") and not line.startswith("  ")]
    assert titles == [
        "cand@full",
        "more@full",
        "cand@partial",
        "more@partial",
        "cand@full less its change under partial",
        "more@full less its change under partial",
    ]
    assert sum(line.startswith("  epoch: ") for line in lines) == 6


@pytest.mark.parametrize("profiled", [False, True])
def test_one_run_has_no_power(capsys: pytest.CaptureFixture[str], profiled: bool) -> None:
    experiment(profiled, counts=((100,), (80,)))
    code, out, err = slotscope(capsys, "experiment", "power")
    assert (code, out) == (1, "")
    assert "at least 2 runs of either are needed" in err


@pytest.mark.parametrize("profiled", [False, True])
def test_dry_run_tells_what_metrics_would_show(capsys: pytest.CaptureFixture[str], profiled: bool) -> None:
    experiment(profiled)
    (power,) = json.loads(slotscope(capsys, "experiment", "power", "--format", "json")[1])["comparisons"]
    visible = {row["name"]: row["visible"][power["runs"].index(4)] / SAMPLE_NS for row in power["metrics"] if row["visible"]}
    Path("plan.toml").write_text(PLAN)
    code, out, _ = slotscope(capsys, "experiment", "run", "plan.toml", "--dry-run")
    assert code == 0
    (line,) = [line for line in out.splitlines() if line.startswith("  epoch: ")]
    assert line.startswith(f"  epoch: {visible['epoch']:.2g} ms (")
    assert ("  total: " in out) == profiled


@pytest.mark.parametrize(("limit", "code"), [("epoch:5", 3), ("5", 3), ("epoch:40", 0), ("nosuch:5", 2)])
def test_limits_of_an_experiment(capsys: pytest.CaptureFixture[str], limit: str, code: int) -> None:
    """The second build takes 26 % more."""
    experiment(profiled=True, counts=(CAND, BASE))
    found, _, err = slotscope(capsys, "experiment", "show", "--fail-on", limit)
    assert found == code
    assert (limit.partition(":")[0] in err) == (code != 0)


@pytest.mark.parametrize(("limit", "code"), [("epoch:10", 3), ("metric:epoch:10", 3), ("epoch:30", 0), ("10", 0)])
def test_metrics_that_should_be_high_break_a_limit_by_falling(
    capsys: pytest.CaptureFixture[str], limit: str, code: int
) -> None:
    """The second build has 20 % less of everything."""
    experiment(profiled=True, direction=Direction.HIGHER)
    found, _, err = slotscope(capsys, "experiment", "show", "--fail-on", limit)
    assert found == code
    assert ("cand: " in err and "fell by at least" in err) == (code == 3)


@pytest.mark.parametrize("primary", ["epoch", ""])
def test_steps_without_a_profile_are_those_of_the_metric(capsys: pytest.CaptureFixture[str], primary: str) -> None:
    experiment(profiled=False, counts=(BASE, CAND, (70, 71, 69, 70)), primary=primary)
    code, out, _ = slotscope(capsys, "experiment", "show", "--format", "json")
    assert code == 0
    ladder = json.loads(out)["conditions"][0]["ladder"]
    assert (ladder["quantity"], ladder["largest"]) == ("epoch", "cand")
    means = [2 * sum(of_runs) / 4 * SAMPLE_NS for of_runs in (BASE, CAND, (70, 71, 69, 70))]
    assert [step["to_previous"]["delta"] for step in ladder["steps"]] == pytest.approx(
        [means[1] - means[0], means[2] - means[1]]
    )


def test_a_primary_metric_that_one_load_lacks_is_no_error(capsys: pytest.CaptureFixture[str]) -> None:
    experiment(profiled=True, counts=(BASE, CAND, CAND), primary="p99")
    code, out, _ = slotscope(capsys, "experiment", "show", "--format", "json")
    assert code == 0
    assert json.loads(out)["conditions"][0]["ladder"]["quantity"] == "CPU time"


def test_plots_without_a_profile_have_no_waterfall(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib", reason="plots are an extra")
    experiment(profiled=False, primary="")
    assert slotscope(capsys, "experiment", "show", "--plots", "plots")[0] == 0
    assert sorted(path.name for path in Path("plots").iterdir()) == ["runs.png", "runs.svg"]
    assert "epoch ms, one dot a run" in Path("plots/runs.svg").read_text()


# Published means of four and four nodes, in ms.
NODES = {"base": (8.997, 9.026, 9.036, 9.018), "cand": (8.791, 8.822, 8.855, 8.875)}
# Published runs of two builds, in ms.
ARMS = {"base": (858.7, 864.0, 867.8, 871.0, 875.0), "cand": (876.9, 880.0, 885.2, 891.0, 897.9)}


def devnet(nodes: Mapping[str, tuple[float, ...]] = NODES) -> None:
    """Processes of each build, watched for two windows, in which they are a little above and below their mean."""
    store = open_store(Path(".slotscope"), create=True)
    session = store.begin_session(SessionStart("2026-03-01T10:00:00+00:00", "h", (), 1, has_rounds=True))
    metrics = (MetricFacts("slot", Direction.LOWER, "prometheus"),)
    variants = tuple(map(VariantFacts, nodes))
    record = ExperimentRecord("devnet", Design.PARALLEL, 2, 1, "base", (), variants, metrics=metrics, primary="slot")
    store.put_document(session, DOCUMENT, encode_record(record))
    for window, off in enumerate((0.01, -0.01)):
        for place, (variant, node, mean) in enumerate(
            (variant, f"{variant[0]}{node}", mean) for variant, means in nodes.items() for node, mean in enumerate(means)
        ):
            info = small_info(variant, window, RunMode.PLAIN, session=session)
            identity = replace(info.identity, instance=node, position=window * sum(map(len, nodes.values())) + place)
            outcome = RunOutcome(metrics=(Metric("slot", (mean + off) * SAMPLE_NS, "ns"),))
            store.add(small_capture({}, replace(info, identity=identity, outcome=outcome)))
        store.finish_round(session, window)
    store.finish_session(session)


def devnet_plan() -> None:
    text = '[experiment]\nname = "devnet"\ndesign = "parallel"\nprofile = "none"\nruns = 2\nwindow = 60\n'
    text += '[[metric]]\nname = "slot"\nprometheus = "slot_seconds"\n[[variant]]\nname = "base"\n[[variant]]\nname = "cand"\n'
    for variant in NODES:
        for node in range(5 if variant == "base" else 4):
            text += f'[[target]]\nvariant = "{variant}"\nnode = "{variant[0]}{node}"\npid = 1\nmetrics = "http://x/m"\n'
            text += f"exclude = {'true' if node == 4 else 'false'}\n"
    Path("plan.toml").write_text(text)


def test_dry_run_of_watched_processes(capsys: pytest.CaptureFixture[str]) -> None:
    devnet_plan()
    assert "is not known" in slotscope(capsys, "experiment", "run", "plan.toml", "--dry-run")[1]
    devnet()
    (power,) = json.loads(slotscope(capsys, "experiment", "power", "--format", "json")[1])["comparisons"]
    (slot,) = power["metrics"]
    assert (power["test"], power["replicates"]) == ("Welch t", "processes")
    text = " ".join(slotscope(capsys, "experiment", "power")[1].split())
    assert "so many processes per arm" in text
    assert "80 % (Welch t: 83 % where noise is normal, 77 % where it is heavy-tailed or skewed; within 5 points)" in text
    assert "30 processes processes for 1 %" in text
    assert slot["mean"] == pytest.approx(sum(NODES["base"]) / 4 * SAMPLE_NS)
    out = slotscope(capsys, "experiment", "run", "plan.toml", "--dry-run")[1]
    assert "smallest changes that 4 processes per arm would show" in out
    visible = slot["visible"][power["runs"].index(4)]
    (line,) = [line for line in out.splitlines() if line.startswith("  slot: ")]
    assert f"({100 * visible / slot['mean']:.1f} % of it)" in line


def test_processes_and_their_values_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    devnet()
    for format in ("table", "markdown"):
        text = " ".join(slotscope(capsys, "experiment", "show", "--format", format)[1].split())
        assert "4 processes (8 windows) against 4 (8), Welch t" in text
        assert "b0 8,997.0, b1 9,026.0, b2 9,036.0, b3 9,018.0" in text
        assert "c0 8,791.0, c1 8,822.0, c2 8,855.0, c3 8,875.0" in text
    document = json.loads(slotscope(capsys, "experiment", "show", "--format", "json")[1])
    (slot,) = document["conditions"][0]["candidates"][0]["metrics"]
    assert slot["instances"] == {"baseline": ["b0", "b1", "b2", "b3"], "candidate": ["c0", "c1", "c2", "c3"]}
    assert slot["values"]["baseline"] == pytest.approx([mean * SAMPLE_NS for mean in NODES["base"]])


def shown_row(capsys: pytest.CaptureFixture[str], name: str) -> dict[str, Any]:
    """The metric of the only candidate, as `experiment show` gives it."""
    code, out, _ = slotscope(capsys, "experiment", "show", "--format", "json")
    assert code == 0
    (candidate,) = json.loads(out)["conditions"][0]["candidates"]
    return next(row for row in candidate["metrics"] if row["name"] == name)


def splits_as_extreme(first: Sequence[float], second: Sequence[float]) -> float:
    """Part of all splits of the pooled values, into as many as ``second`` and the rest, that are at least as far apart."""
    pooled = [*first, *second]

    def apart(chosen: Sequence[float]) -> float:
        rest = (sum(pooled) - sum(chosen)) / len(first)
        return abs(sum(chosen) / len(second) - rest)

    splits = [apart(chosen) for chosen in combinations(pooled, len(second))]
    return sum(distance >= apart(second) - 1e-9 for distance in splits) / len(splits)


def test_published_runs_without_overlap_differ(capsys: pytest.CaptureFixture[str]) -> None:
    """Of one round each: every run of the second build took 16 to 23 ms more."""
    experiment(profiled=False, counts=[tuple(value / 2 for value in values) for values in ARMS.values()])
    row = shown_row(capsys, "epoch")
    differences = [18.2, 16.0, 17.4, 20.0, 22.9]
    assert row["delta"] == pytest.approx(18.9 * SAMPLE_NS)
    assert row["relative"] == pytest.approx(18.9 / 867.3)
    assert row["sigma"] == pytest.approx(18.9 / (stdev(differences) / 5**0.5))
    assert row["p"] == pytest.approx(scipy_stats.ttest_1samp(differences, 0).pvalue)
    assert (row["verdict"], row["no_overlap"]) == ("slower", True)
    text = " ".join(slotscope(capsys, "experiment", "show")[1].split())
    assert "cand: epoch +18.9 ms [+15.6, +22.2], +2.18 %, p <0.0001: slower" in text


def test_published_processes_without_overlap_differ(capsys: pytest.CaptureFixture[str]) -> None:
    """The same values of five processes each, which are no pairs."""
    devnet(ARMS)
    row = shown_row(capsys, "slot")
    base, cand = ARMS["base"], ARMS["cand"]
    assert row["delta"] == pytest.approx(18.9 * SAMPLE_NS)
    assert row["sigma"] == pytest.approx(18.9 / ((stdev(base) ** 2 + stdev(cand) ** 2) / 5) ** 0.5)
    assert row["p"] == pytest.approx(scipy_stats.ttest_ind(cand, base, equal_var=False).pvalue)
    assert row["permutation_p"] == pytest.approx(splits_as_extreme(base, cand))
    assert row["permutation_p"] == pytest.approx(2 / 252), "only the split that was made, and its mirror image"
    assert (row["verdict"], row["no_overlap"]) == ("slower", True)
    assert "inside noise" not in slotscope(capsys, "experiment", "show")[1]


def test_published_means_of_four_nodes_each(capsys: pytest.CaptureFixture[str]) -> None:
    """-2.03 %, every node of one build beyond every node of the other, about 9 standard errors."""
    devnet()
    row = shown_row(capsys, "slot")
    base, cand = NODES["base"], NODES["cand"]
    assert row["relative"] == pytest.approx(fmean(cand) / fmean(base) - 1)
    assert row["relative"] == pytest.approx(-0.0203, abs=5e-5)
    error = ((stdev(base) ** 2 + stdev(cand) ** 2) / 4) ** 0.5
    assert row["sigma"] == pytest.approx((fmean(base) - fmean(cand)) / error)
    assert round(row["sigma"]) == 9
    assert row["permutation_p"] == pytest.approx(2 / 70)
    assert (row["verdict"], row["no_overlap"]) == ("faster", True)
    text = " ".join(slotscope(capsys, "experiment", "show")[1].split())
    assert "cand: slot -184 µs [-239, -128], -2.03 %, p = 0.0007: faster" in text
