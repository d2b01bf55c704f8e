"""Plan files: what is read, and one clear line for whatever cannot work."""

from __future__ import annotations

from pathlib import Path

import pytest

from collectors.processes.service import Readiness
from profiler.errors import UsageError
from profiler.experiment.plan.experiment_plan import ExperimentPlan, MetricKind, SourceEdit
from profiler.experiment.plan.plan_file import parse_plan, read_plan
from profiler.experiment.plan.recording_plan import ProfilePolicy
from profiler.model.experiment import Design, Direction
from profiler.toml.toml_positions import toml_positions

PLAN = """\
[experiment]
name = "skip-slots"
design = "interleaved"
runs = 12
warmup = 1
seed = 7
baseline = "base"
primary = "epoch"
per = 32
phase = "complete_state_advance"
margin = 2
cpus = "0-1"
timeout = "5 min"
aa = true
command = ["{binary}", "skip-slots",
  "--pre-state-path", "{input.state}"]

[[input]]
name = "state"
path = "state.ssz"   # relative to the plan
note = "mainnet, slot 4"

[[variant]]
name = "base"
binary = "{build_dir}/lcli"
source = "lighthouse"
build = ["cargo", "build", "--target-dir", "{build_dir}"]
build_env = { RUSTFLAGS = "-C force-frame-pointers=yes" }

[variant.rebuild]
command = ["cargo", "build"]
edit = { file = "src/lib.rs", find = "a", replace = "b" }

[[variant]]
name = "vecmap"
binary = "./lcli-vecmap"
note = '''VecMap
instead of BTreeMap'''

[[condition]]
name = "full"

[[condition]]
name = "partial"
args = ["--partial-state-advance"]
control = true

[[metric]]
name = "epoch"
regex = 'Run \\d+: ([\\d.]+)(ms|s)'

[[metric]]
name = "throughput"
json = "result.rate"
direction = "higher"
pick = "last"
"""


def parsed(text: str) -> ExperimentPlan:
    return parse_plan(text, Path("/plans/plan.toml"))


def test_everything_that_a_plan_says() -> None:
    plan = parsed(PLAN)
    assert (plan.name, plan.design, plan.runs, plan.warmup, plan.seed) == ("skip-slots", Design.INTERLEAVED, 12, 1, 7)
    assert (plan.primary, plan.per, plan.margin, plan.timeout_s, plan.is_aa) == ("epoch", 32.0, 0.02, 300.0, True)
    assert plan.profile is ProfilePolicy.SEPARATE
    assert plan.cpus == {0, 1}
    assert plan.inputs[0].path == Path("/plans/state.ssz")
    base, vecmap = plan.variants
    assert base.source == Path("/plans/lighthouse")
    assert base.build_env == (("RUSTFLAGS", "-C force-frame-pointers=yes"),)
    assert base.rebuild is not None
    assert base.rebuild.edit == SourceEdit(Path("/plans/lighthouse/src/lib.rs"), "a", "b")
    assert vecmap.note == "VecMap\ninstead of BTreeMap"
    assert [(condition.name, condition.is_control) for condition in plan.conditions] == [("full", False), ("partial", True)]
    assert [(metric.kind, metric.direction) for metric in plan.metrics] == [
        (MetricKind.REGEX, Direction.LOWER),
        (MetricKind.JSON, Direction.HIGHER),
    ]
    assert plan.text == PLAN


SERVICE = """\
[experiment]
name = "server"
profile = "none"

[[variant]]
name = "a"
binary = "./a"
[[variant]]
name = "b"
binary = "./b"

[[load]]
name = "steady"
service = ["{binary}", "--port", "9000"]
ready = { http = "http://127.0.0.1:9000/health", timeout = 5 }
command = ["wrk", "http://127.0.0.1:9000"]
window = "30 s"
stop = "SIGINT"
requests = "served"

[[metric]]
name = "served"
regex = '(\\d+) requests'
from = "steady"
"""


def test_a_service_under_load() -> None:
    load = parsed(SERVICE).loads[0]
    assert load.ready == Readiness(http="http://127.0.0.1:9000/health", timeout_s=5.0)
    assert (load.window_s, load.stop_signal, load.requests) == (30.0, "INT", "served")


def targets(of_base: int, of_cand: int, settings: str = "") -> str:
    text = f'[experiment]\nname = "devnet"\ndesign = "parallel"\nprofile = "none"\nbaseline = "base"\n{settings}\n'
    text += '[[variant]]\nname = "base"\n[[variant]]\nname = "cand"\n'
    for variant, count in (("base", of_base), ("cand", of_cand)):
        for node in range(count):
            text += f'[[target]]\nvariant = "{variant}"\nnode = "{variant}{node}"\nmetrics = "http://127.0.0.1:{9200 + node}"\n'
    return text + '[[metric]]\nname = "st"\nprometheus = "lean_state_transition_time_seconds"\n'


def test_running_targets() -> None:
    plan = parsed(targets(4, 4))
    assert len(plan.targets) == 8
    assert plan.metrics[0].kind is MetricKind.PROMETHEUS


def edited(old: str, new: str, text: str = PLAN) -> str:
    assert old in text
    return text.replace(old, new, 1)


COMMAND = 'command = ["{binary}", "skip-slots",\n  "--pre-state-path", "{input.state}"]'
READY = 'ready = { http = "http://127.0.0.1:9000/health", timeout = 5 }\n'
MISTAKES = {
    "not TOML": (edited('name = "skip-slots"', "name = skip"), 2, "not valid TOML"),
    "not closed": ('[experiment]\nname = "x', 2, "not valid TOML"),
    "empty": ("", 1, "begins with a table"),
    "no experiment": ("[[variant]]\nname='a'\n", 1, "begins with a table"),
    "experiment as a list": ("[[experiment]]\nname='a'\n", 1, "begins with a table"),
    "unknown table": (edited("[[metric]]", "[[metrics]]"), 48, "unknown table 'metrics'; did you mean metric?"),
    "unknown setting": (edited("runs = 12", "run = 12"), 4, "experiment.run: unknown key; did you mean runs?"),
    "unknown key of a variant": (edited("note = '''", "notes = '''"), 37, "variant.notes: unknown key; did you mean note?"),
    "unknown key of an inner table": (edited("replace =", "replaced ="), 30, "variant.rebuild"),
    "one bracket": (edited("[[condition]]\nname = \"full\"\n\n[[condition]]", "[condition]"), 40, "two brackets"),
    "no name": (edited('name = "skip-slots"\n', ""), 1, "experiment.name: is missing"),
    "name is a number": (edited('name = "skip-slots"', "name = 3"), 2, "expected text in quotes, not 3"),
    "empty name": (edited('name = "skip-slots"', 'name = ""'), 2, "expected text in quotes"),
    "runs is text": (edited("runs = 12", 'runs = "12"'), 4, "expected a whole number from 1"),
    "runs is no whole number": (edited("runs = 12", "runs = 1.5"), 4, "expected a whole number"),
    "runs is true": (edited("runs = 12", "runs = true"), 4, "expected a whole number"),
    "too few runs": (edited("runs = 12", "runs = 2"), 4, "can reach no verdict: at least 3"),
    "no runs": (edited("runs = 12", "runs = 0"), 4, "from 1"),
    "negative warmup": (edited("warmup = 1", "warmup = -1"), 5, "from 0"),
    "negative seed": (edited("seed = 7", "seed = -7"), 6, "at least 0"),
    "per nothing": (edited("per = 32", "per = 0"), 9, "a number of at least"),
    "per nan": (edited("per = 32", "per = nan"), 9, "a number of at least"),
    "bad design": (edited('"interleaved"', '"interleave"'), 3, "is none of interleaved, parallel, crossover"),
    "design needs targets": (edited('"interleaved"', '"parallel"'), 3, "for running processes"),
    "bad profile": (edited("aa = true", 'profile = "off"'), 14, "is none of separate, same, none"),
    "bad phase": (edited('"complete_state_advance"', '"("'), 10, "not a regular expression"),
    "bad cpus": (edited('"0-1"', '"a"'), 12, "expected numbers and ranges"),
    "bad timeout": (edited('"5 min"', '"5 minutes"'), 13, 'text such as "90 s"'),
    "infinite timeout": (edited('"5 min"', "inf"), 13, "expected seconds"),
    "bad call graph": (edited("aa = true", 'call_graph = "dwarf,7"'), 14, "multiple of 8"),
    "command is text": (edited(COMMAND, 'command = "ls -l"'), 15, "a list of arguments"),
    "zero byte": (edited('"skip-slots",\n', '"skip\\u0000slots",\n'), 15, "zero byte"),
    "zero byte in a name": (edited('baseline = "base"', 'baseline = "ba\\u0000se"'), 7, "zero byte"),
    "baseline is nobody": (edited('baseline = "base"', 'baseline = "bas"'), 7, "no variant 'bas'; did you mean base?"),
    "primary is nothing": (edited('primary = "epoch"', 'primary = "epohc"'), 8, "did you mean epoch?"),
    "input is nowhere": (edited("{input.state}", "{input.stat}"), 15, "nothing here; did you mean input.state?"),
    "no build directory": (edited('build = ["cargo", "build", "--target-dir", "{build_dir}"]\n', ""), 23, "follow a build"),
    "two variants of one name": (edited('name = "vecmap"', 'name = "base"'), 35, "twice: the first in line 23"),
    "variant named last": (edited('name = "vecmap"', 'name = "last"'), 35, "variant name 'last'"),
    "variant with @": (edited('name = "vecmap"', 'name = "vec@map"'), 35, "@ stands between"),
    "no binary": (edited('binary = "./lcli-vecmap"\n', ""), 34, "binary is missing"),
    "binary without a place": (edited('command = ["{binary}"', 'command = ["lcli"'), 25, "no {binary} in the command"),
    "again is taken": (edited('name = "vecmap"', 'name = "base-again"'), 14, "a variant already"),
    "environment is a number": (edited('"-C force-frame-pointers=yes"', "3"), 28, "expected text in quotes"),
    "two controls": (edited('name = "full"\n', 'name = "full"\ncontrol = true\n'), 47, "one control"),
    "control alone": (edited('[[condition]]\nname = "full"\n\n', ""), 43, "another condition"),
    "control is text": (edited("control = true", 'control = "yes"'), 46, "true or false"),
    "two sources of a metric": (edited('json = "result.rate"', 'json = "a"\nregex = "(b)"'), 54, "exactly one of"),
    "no source of a metric": (edited('json = "result.rate"\n', ""), 52, "exactly one of"),
    "metric without a group": (edited("([\\d.]+)(ms|s)", "x"), 50, "needs one group"),
    "metric is a time": (edited('name = "throughput"', 'name = "wall"'), 53, "measured anyway"),
    "bad direction": (edited('"higher"', '"up"'), 55, "is none of lower, higher"),
    "bad pick": (edited('"last"', '"max"'), 56, "is none of mean"),
    "prometheus without a service": (edited('json = "result.rate"', 'prometheus = "x_seconds"'), 54, "running services"),
    "metric of no load": (edited('json = "result.rate"', 'json = "a"\nfrom = "x"'), 55, "no load 'x'"),
    "one variant": ('[experiment]\nname = "x"\ncommand = ["ls"]\n[[variant]]\nname = "a"\n', 4, "compares with nothing"),
    "no command": (edited("command = [", "before = ["), 1, "command is missing"),
    "service without readiness": (edited(READY, "", SERVICE), 12, "load.ready: is missing"),
    "two kinds of readiness": (edited("timeout = 5", "port = 3", SERVICE), 15, "exactly one of port, http, log"),
    "port too large": (edited('http = "http://127.0.0.1:9000/health"', "port = 70000", SERVICE), 15, "from 1 to 65535"),
    "unknown signal": (edited("SIGINT", "SIGFOO", SERVICE), 18, "'FOO' is none of TERM"),
    "command beside a load": (edited('profile = "none"', 'command = ["{binary}"]', SERVICE), 3, "no command beside it"),
    "requests of no metric": (edited('requests = "served"', 'requests = "server"', SERVICE), 19, "did you mean served?"),
    "two processes of a variant": (targets(4, 2), 11, "variant cand has 2 processes; the process is the replicate"),
    "target of no variant": (edited('variant = "cand"', 'variant = "cant"', targets(4, 4)), 28, "did you mean cand?"),
    "interleaved targets": (edited('design = "parallel"\n', "", targets(4, 4)), 1, "watched side by side"),
    "target with a command": (targets(4, 4, 'command = ["ls"]'), 6, "targets run already"),
    "target found twice": (edited('node = "cand0"', 'node = "c"\npid = 3\ncomm = "x"', targets(4, 4)), 31, "one of pid, comm"),
    "target that nothing finds": (edited('metrics = "http://127.0.0.1:9200"\n', "", targets(4, 4)), 11, "is needed"),
    "targets with conditions": (edited("[[metric]]", "[[condition]]\nname = 'c'\n[[metric]]", targets(4, 4)), 43, "already"),
    "targets again": (targets(4, 4, "aa = true"), 6, "means nothing for processes that run already"),
    "targets once more": (targets(4, 4, "retries = 2"), 6, "retries means nothing for processes that run already"),
    "window of nothing": (targets(4, 4, "window = 0"), 6, "takes time"),
    "swap without a crossover": (targets(4, 4, 'swap = ["x"]'), 6, "swap is for"),
    "settle without targets": (edited("aa = true", "settle = 3"), 14, "add [[target]]"),
    "metric of a running process": (edited("prometheus = ", "stat = ", targets(4, 4)), 45, "only prometheus"),
    "no series": (edited('"lean_state', '"lean state', targets(4, 4)), 45, "expected a series"),
    "node of two variants": (edited('node = "cand0"', 'node = "base0"', targets(4, 4)), 29, "that would be design"),
    "crossover without a swap": (edited("parallel", "crossover", targets(4, 4)), 3, "a crossover needs swap"),
    "crossover of one variant each": (
        edited("parallel", "crossover", targets(4, 4, 'swap = ["x", "{node}"]')), 13, "listed under both variants"
    ),
    "swap of nothing": (edited("parallel", "crossover", targets(4, 4, 'swap = ["{nod}"]')), 6, "did you mean node?"),
    "target without a page": (
        edited('metrics = "http://127.0.0.1:9200"\n', "pid = 3\n", targets(4, 4)), 45, "target base0 has no metrics"
    ),
    "address that is none": (edited("http://127.0.0.1:9200", "127.0.0.1:9200", targets(4, 4)), 14, "expected an address"),
    "requests of another output": (edited("from = \"steady\"", "", SERVICE), 19, "not read from this load's output"),
    "load with a +": (edited('name = "steady"', 'name = "a+b"', SERVICE).replace('"steady"', '"a+b"'), 13, "stands between"),
    "page of no load": (edited("regex = '(\\d+) requests'\nfrom = \"steady\"", "prometheus = 'x'", SERVICE)
                        .replace('requests = "served"\n', ""), 22, "needs metrics"),
    "stat without plain runs": (edited('json = "result.rate"', "stat = 'cycles'").replace("aa = true", "profile = 'same'"), 54,
                                "runs without a profile"),
    "command's placeholder": (edited('json = "result.rate"', "json = 'a'\ncommand = ['{binry}']"), 55, "did you mean binary"),
    "profile of an address": (edited('profile = "none"', 'profile = "same"', targets(4, 4)), 4, "no profile"),
}  # fmt: skip


def test_enough_different_mistakes_are_told() -> None:
    assert len({text for text, _, _ in MISTAKES.values()}) >= 80


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_named_with_their_line(mistake: str) -> None:
    text, line, words = MISTAKES[mistake]
    with pytest.raises(UsageError) as raised:
        parsed(text)
    message = str(raised.value)
    assert words in message
    assert message.startswith(f"/plans/plan.toml:{line}: ")
    assert "\n" not in message


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        read_plan(tmp_path / "missing.toml")
    with pytest.raises(UsageError, match="directory"):
        read_plan(tmp_path)
    (tmp_path / "latin.toml").write_bytes(b'name = "\xe9"')
    with pytest.raises(UsageError, match="not UTF-8 text"):
        read_plan(tmp_path / "latin.toml")


def test_lines_of_keys_behind_values_of_many_lines() -> None:
    text = 'a = """\nb = 1\n"""\nc = [ # [\n "]", \'"\',\n]\nd = {x = "\\"}"}\ne = 1\n'
    text += '[t]\n"f" . g = 1\n[[u]]\n[u.v]\nw = 1\n[[u]]\nw = 2\n'
    positions = toml_positions(text)
    assert [positions.line_of("", 0, key) for key in "acde"] == [1, 4, 7, 8]
    assert positions.line_of("", 0, "b") == 1, "b stands inside a string"
    assert positions.line_of("t", 0, "f") == 10
    assert [positions.line_of("u", 0, "v"), positions.line_of("u", 1), positions.line_of("u", 1, "w")] == [12, 14, 15]
