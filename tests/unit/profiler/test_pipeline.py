"""From captures to costs: which runs count, which samples, and what is said about the rest."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from profiler.errors import AnalysisError, UsageError
from profiler.model.capture import Capture, empty_capture
from profiler.model.costs import ArmCosts
from profiler.model.event import Event
from profiler.model.quality import CaptureQuality
from profiler.model.run import RunMode, RunOutcome
from profiler.pipeline import AnalysisOptions, Arm, arm_call_stacks, arm_costs, explain_function
from support.profile_from_text import CPU_CLOCK, DrawnProfile, DrawnSymbols, draw, info_of, profile_from_text, samples_from_text

DRAWN = """
time    0       10              20                    30     40
weight  1       10              100                   1000   10000
---
        main    main            main                  main   main
        .       phase::hash     phase::hash           plain  my::f
        .       sha256::digest  merkle::hash_node     .      .
        .       .               libc.so!memmove       .      .
"""


def profile(round_number: int = 0, text: str = DRAWN) -> DrawnProfile:
    return profile_from_text(text, info_of(round_number=round_number))


def symbols_of(*profiles: DrawnProfile) -> DrawnSymbols:
    return DrawnSymbols({key: chain for entry in profiles for key, chain in entry.symbols.chains.items()})


def costs_of(options: AnalysisOptions, *profiles: DrawnProfile) -> ArmCosts:
    profiles = profiles or (profile(),)
    return arm_costs(Arm("base", [entry.capture for entry in profiles]), options, symbols_of(*profiles))


def categories(costs: ArmCosts) -> dict[str, list[int]]:
    table = costs.tables["category"]
    return dict(zip(table.names, table.self_weight.tolist(), strict=True))


def test_default_rules_and_view() -> None:
    costs = costs_of(AnalysisOptions())
    assert categories(costs) == {"module: my": [10000], "other": [1001], "memmove": [100], "SHA-256": [10]}
    assert (costs.name, costs.event, costs.unit) == ("base", "cpu-clock", "ns")
    assert (costs.rules, costs.view) == ("ethereum+native", "leaf")
    assert [(cell.leaf, cell.owner, cell.weight) for cell in costs.owners if cell.leaf != cell.owner] == [
        ("memmove", "tree hashing", 100)
    ]
    assert [(entry.name, entry.weight) for entry in costs.other_functions] == [("plain", 1000), ("main", 1)]


def test_owner_view_and_own_rules(tmp_path: Path) -> None:
    costs = costs_of(AnalysisOptions(view="owner", dimensions=("category", "group")))
    assert categories(costs)["tree hashing"] == [100]
    assert "memmove" not in categories(costs)
    own = tmp_path / "own.toml"
    own.write_text("[[rule]]\ncategory = \"mine\"\nfunction = '^phase::'\n")
    assert categories(costs_of(AnalysisOptions(rules=(str(own),)))) == {"other": [11001], "mine": [110]}


def test_plain_and_failed_runs_are_told_apart() -> None:
    plain = empty_capture(info_of(mode=RunMode.PLAIN))
    failed = empty_capture(info_of(round_number=3, outcome=RunOutcome(exit_code=1, failure="exit code 1")))
    failed_plain = empty_capture(info_of(round_number=4, mode=RunMode.PLAIN, outcome=RunOutcome(failure="killed")))
    good = profile()
    arm = Arm("base", [failed, good.capture, plain, failed_plain])
    costs = arm_costs(arm, AnalysisOptions(), good.symbols)
    assert costs.infos == (good.capture.info,)
    assert costs.plain == (plain.info,)
    assert costs.failed == (failed.info, failed_plain.info)
    assert [warning.message for warning in costs.warnings if warning.code == "failed-runs"] == [
        "base: 2 failed runs are left out (exit code 1; killed)"
    ]


def test_an_arm_of_plain_runs_has_empty_tables() -> None:
    costs = arm_costs(Arm("base", [empty_capture(info_of(mode=RunMode.PLAIN))]), AnalysisOptions(), DrawnSymbols())
    assert costs.tables["category"].self_weight.shape == (0, 0)
    assert len(costs.plain) == 1


def test_runs_are_ordered_by_identity() -> None:
    first, second = profile(0), profile(1, "weight  5\n---\nmain\nplain")
    both = symbols_of(first, second)
    for captures in ([first.capture, second.capture], [second.capture, first.capture]):
        costs = arm_costs(Arm("base", captures), AnalysisOptions(), both)
        assert [info.identity.round for info in costs.infos] == [0, 1]
        assert categories(costs)["other"] == [1001, 5]
        assert costs.tables["category"].total.tolist() == [11111, 5]


def test_phases_choose_samples_and_measure_windows() -> None:
    costs = costs_of(AnalysisOptions(phase="^phase::hash$"))
    assert categories(costs) == {"memmove": [100], "SHA-256": [10]}
    assert costs.phase_windows_ns is not None
    assert costs.phase_windows_ns.tolist() == [20]
    assert costs_of(AnalysisOptions()).phase_windows_ns is None


def test_a_phase_that_matches_nothing_names_what_is_near() -> None:
    with pytest.raises(AnalysisError) as raised:
        costs_of(AnalysisOptions(phase="phase::hsah"))
    assert str(raised.value).startswith("base: no sample matches the phase 'phase::hsah'; nearest names: phase::hash")
    assert raised.value.missing == ()


@pytest.mark.parametrize(("nameless", "listed"), [(21, ["app"]), (20, [])])
def test_what_matches_nothing_names_the_files_without_names_when_they_weigh(nameless: int, listed: list[str]) -> None:
    drawn = profile(text=f"weight  {nameless}  {100 - nameless}\n---\nmain  main\napp!?  plain")
    with pytest.raises(AnalysisError) as raised:
        costs_of(AnalysisOptions(phase="^phase::hash$"), drawn)
    assert [(Path(entry.path).name, entry.share) for entry in raised.value.missing] == [(name, 0.21) for name in listed]
    with pytest.raises(AnalysisError) as raised:
        explain_function(Arm("base", [drawn.capture]), "phase::hash", AnalysisOptions(), drawn.symbols)
    assert [Path(entry.path).name for entry in raised.value.missing] == listed


def test_a_phase_that_some_runs_lack_is_a_warning() -> None:
    costs = costs_of(AnalysisOptions(phase="^phase::hash$"), profile(0), profile(1, "main\nplain"))
    assert [w.message for w in costs.warnings if w.code == "phase-missing"] == [
        "base: 1 of 2 runs has no sample in the phase and counts as 0"
    ]
    assert costs.tables["category"].total.tolist() == [110, 0]


OPEN_PHASE = """
time    0       10           20      30       40
weight  1       50           {outside}       1000     10000
state   ok      {state}      {state}         ok       ok
---
        main    main         main    main     main
        .       phase::hash  work    work     .
"""


@pytest.mark.parametrize(
    ("state", "outside", "is_open"),
    [
        ("rootless", 950, True),  # the phase has 50 of its 1000
        ("truncated", 3, True),  # 3 of 53 are more than 5 %
        ("rootless", 2, False),  # 2 of 52 are not
        ("gap", 17, True),  # 17 of 67 are more than 25 %
        ("gap", 16, False),
        ("ok", 950, False),
    ],
)
def test_a_phase_whose_end_no_stack_shows(state: str, outside: int, is_open: bool) -> None:
    costs = costs_of(AnalysisOptions(phase="^phase::hash$"), profile(text=OPEN_PHASE.format(state=state, outside=outside)))
    warnings = [warning for warning in costs.warnings if warning.code == "phase-open"]
    assert len(warnings) == is_open
    if is_open:
        assert f"{100 * outside / (50 + outside):.1f} %" in warnings[0].message
        assert warnings[0].advice == "record with --call-graph dwarf"
        assert costs.quality.status != "ok"


def test_cpu_time_that_no_sample_shows_is_part_of_the_verdict() -> None:
    drawn = profile_from_text("\n".join(["weight" + "  10" * 200, "---", "  ".join(["main"] * 200)]), info_of())
    seen = costs_of(AnalysisOptions(), drawn)
    assert seen.quality.status == "ok"
    info = info_of(outcome=RunOutcome(user_ns=4000))
    unseen = arm_costs(Arm("base", [replace(drawn.capture, info=info)]), AnalysisOptions(), drawn.symbols)
    assert (unseen.quality.status, [w.code for w in unseen.warnings]) == ("warn", ["cpu-time-unseen"])


def test_focus_and_ignore() -> None:
    assert categories(costs_of(AnalysisOptions(focus="^phase::", ignore="memmove"))) == {"SHA-256": [10]}
    costs = costs_of(AnalysisOptions(focus="absent"))
    assert categories(costs) == {}
    assert "empty-focus" in [warning.code for warning in costs.warnings]


def test_events_are_never_mixed() -> None:
    faults = Event("page-faults", "page-faults", 0, 1)
    drawn = draw(samples_from_text("weight  7  5\nevent  0  1\n---\nmain  main"), info_of(), (CPU_CLOCK, faults))
    assert categories(costs_of(AnalysisOptions(), drawn)) == {"other": [7]}
    costs = costs_of(AnalysisOptions(event="page-faults"), drawn)
    assert (categories(costs), costs.unit) == ({"other": [5]}, "page-faults")


def test_notes_of_recordings_become_warnings_once() -> None:
    noted = [replace(profile(number).capture, quality=CaptureQuality(notes=("clock was stepped",))) for number in range(2)]
    costs = arm_costs(Arm("base", noted), AnalysisOptions(), profile().symbols)
    assert [w.message for w in costs.warnings if w.code == "recording"] == ["base: clock was stepped"]


def test_names_from_the_recording_are_made_canonical() -> None:
    costs = costs_of(AnalysisOptions(dimensions=("function",)), profile(0, "main\n[kernel]!try_charge.isra.0"))
    table = costs.tables["function"]
    assert dict(zip(table.names, table.labels, strict=True))["try_charge"] == "try_charge.isra.0"


def test_progress_names_the_runs() -> None:
    said: list[str] = []
    one, two = profile(0), profile(1)
    arm_costs(Arm("base", [one.capture, two.capture]), AnalysisOptions(), one.symbols, said.append)
    assert said == ["base: run 1 of 2", "base: run 2 of 2"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (AnalysisOptions(dimensions=("colour",)), "unknown dimension 'colour'"),
        (AnalysisOptions(view="top"), "unknown view 'top'"),
        (AnalysisOptions(phase="x", phase_scope="cluster"), "unknown phase scope 'cluster': choose one of process"),
        (AnalysisOptions(phase="("), r"--phase '\(' is no regular expression"),
        (AnalysisOptions(rules=("etherium",)), "unknown rule set 'etherium'"),
        (AnalysisOptions(event="cycles"), "no single event 'cycles'"),
    ],
)
def test_options_that_cannot_be_used(options: AnalysisOptions, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        costs_of(options)


def test_call_stacks_hold_the_total() -> None:
    one, two = profile(0), profile(1)
    arm = Arm("base", [one.capture, two.capture])
    stacks = arm_call_stacks(arm, AnalysisOptions(phase="^phase::hash$"), one.symbols)
    assert stacks.weight.sum(axis=0).tolist() == [110, 110]
    assert (stacks.arm, stacks.event, stacks.unit) == ("base", "cpu-clock", "ns")


def test_explain() -> None:
    one = profile()
    arm = Arm("base", [one.capture])
    (found,) = explain_function(arm, "memmove", AnalysisOptions(), one.symbols)
    assert (found.category, found.owner, found.weight, found.share) == ("memmove", "tree hashing", 100, 100 / 11111)
    assert found.rule_origin.startswith("common.toml:")
    with pytest.raises(AnalysisError, match="no sample has a function that matches 'memmoev'; nearest names: memmove"):
        explain_function(arm, "memmoev", AnalysisOptions(), one.symbols)


def test_symbolizers_are_asked_for_files_only() -> None:
    one = profile(0, "main\nlibc.so!memmove\n[kernel]!fault")
    captures: list[Capture] = [one.capture]
    arm_costs(Arm("base", captures), AnalysisOptions(), one.symbols)
    assert one.symbols.asked == ["/bin/app", "/bin/libc.so"]
