"""Several loads are arms of their own: labels, commands, metrics and conditions."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from profiler.experiment.binaries.builds import BuildPlace, build_variants
from profiler.experiment.experiment_session import experiment_record
from profiler.experiment.plan.plan_file import parse_plan
from profiler.experiment.run.arms import arm_labels, experiment_arms

PLAN = """
[experiment]
name = "server"
runs = 3
[[variant]]
name = "a"
binary = "./a"
[[variant]]
name = "b"
binary = "./b"
[[condition]]
name = "warm"
[[condition]]
name = "cold"
args = ["--cold"]
control = true
[[load]]
name = "steady"
service = ["{binary}", "--port", "9000"]
ready = { port = 9000 }
command = ["wrk2", "{binary}"]
metrics = "http://127.0.0.1:9000/metrics"
[[load]]
name = "flood"
service = ["{binary}", "--port", "9001"]
ready = { port = 9001 }
command = ["wrk"]
requests = "served"
[[metric]]
name = "p99"
regex = 'p99 (.*)'
from = "steady"
[[metric]]
name = "served"
regex = '(.*) served'
from = "flood"
[[metric]]
name = "handling"
prometheus = "handling_seconds"
[[metric]]
name = "faults"
stat = "page-faults"
"""


def test_every_load_is_a_condition(tmp_path: Path) -> None:
    for name in "ab":
        shutil.copy("/bin/true", tmp_path / name)
    plan = parse_plan(PLAN, tmp_path / "plan.toml")
    built = build_variants(plan, BuildPlace(tmp_path / "builds", sys.stderr.fileno(), lambda _: None))
    arms = experiment_arms(plan, built)
    names = ("warm+steady", "warm+flood", "cold+steady", "cold+flood")
    assert arm_labels(plan) == tuple(f"{variant}@{name}" for name in names for variant in "ab")
    assert [arm.arm.label for arm in arms] == list(arm_labels(plan))
    steady, flood = arms[4], arms[7]
    assert steady.arm.command == (str(tmp_path / "a"), "--port", "9000", "--cold")
    assert steady.load_command == ("wrk2", str(tmp_path / "a"))
    assert flood.arm.command == (str(tmp_path / "b"), "--port", "9001", "--cold")
    assert [spec.name for spec in steady.metrics.load_output] == ["p99"]
    assert [spec.name for spec in flood.metrics.load_output] == ["served"]
    assert [page.name for page in steady.metrics.pages] == ["handling"]
    assert flood.metrics.pages == (), "its service has no page"
    assert [stat.event for stat in flood.metrics.stats] == ["page-faults"]
    record = experiment_record(plan, built)
    assert [(facts.name, facts.load, facts.is_control) for facts in record.conditions] == [
        ("warm+steady", "steady", False),
        ("warm+flood", "flood", False),
        ("cold+steady", "steady", True),
        ("cold+flood", "flood", True),
    ]
    assert record.metrics[-1].name == "flood: CPU per request"
    assert record.command == ("{binary}", "--port", "9000")


def test_one_load_needs_no_name_in_the_arms(tmp_path: Path) -> None:
    one = PLAN.partition('[[load]]\nname = "flood"')[0]
    assert arm_labels(parse_plan(one, tmp_path / "plan.toml")) == ("a@warm", "b@warm", "a@cold", "b@cold")
    head, _, rest = one.partition("[[condition]]")
    without = head + "[[load]]" + rest.partition("[[load]]")[2]
    assert arm_labels(parse_plan(without, tmp_path / "plan.toml")) == ("a", "b")
