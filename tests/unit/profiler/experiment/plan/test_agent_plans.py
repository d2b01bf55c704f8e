"""Plans whose targets are on agents: what they say, and what is refused with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiler.errors import UsageError
from profiler.experiment.plan.experiment_plan import ExperimentPlan
from profiler.experiment.plan.plan_file import parse_plan
from profiler.experiment.plan.recording_plan import ProfilePolicy

HEAD = '[experiment]\nname = "x"\ndesign = "parallel"\n'
VARIANTS = '[[variant]]\nname = "base"\n[[variant]]\nname = "fat"\n'


def target(variant: str, agent: str, more: str = 'process = "node"') -> str:
    return f'[[target]]\nvariant = "{variant}"\nagent = "{agent}"\n{more}\n'


def parallel(more: str = 'process = "node"') -> str:
    return "".join(target(variant, f"{variant}{number}", more) for variant in ("base", "fat") for number in range(3))


def crossover(nodes: int = 3, more: str = 'process = "node"') -> str:
    return "".join(target(variant, f"h{number}", more) for number in range(nodes) for variant in ("base", "fat"))


def parsed(text: str) -> ExperimentPlan:
    return parse_plan(text, Path("p.toml"))


def test_what_a_plan_says() -> None:
    plan = parsed(HEAD + "runs = 10\n" + VARIANTS + parallel() + target("fat", "spare", 'process = "node"\nexclude = true'))
    assert (plan.is_over_agents, plan.has_workloads) == (True, False)
    assert (plan.profile, plan.retries, plan.frequency_hz) == (ProfilePolicy.SEPARATE, 4, 99), "2 and one for every fifth of 10"
    first, last = plan.targets[0], plan.targets[-1]
    assert (first.node, first.agent, first.process, first.workload) == ("base0", "base0", "node", "")
    assert (last.node, last.is_excluded) == ("spare", True)


def test_several_processes_of_one_agent_have_names_of_their_own() -> None:
    text = "".join(
        target(variant, "host", f'process = "{variant}-node{number}"\nnode = "{variant}{number}"')
        for variant in ("base", "fat")
        for number in range(3)
    )
    assert [each.node for each in parsed(HEAD + VARIANTS + text).targets] == ["base0", "base1", "base2", "fat0", "fat1", "fat2"]


def test_workloads() -> None:
    metric = "[[metric]]\nname = \"epoch\"\nregex = 'Run: ([0-9]+)ms'\n"
    settings = 'timeout = "5 min"\nprimary = "epoch"\n'
    plan = parsed(HEAD + settings + VARIANTS + metric + parallel('workload = "skip-slots"'))
    assert (plan.has_workloads, plan.frequency_hz, plan.timeout_s) == (True, 1999, 300.0)


MISTAKES = {
    "not side by side": (
        '[experiment]\nname = "x"\n' + VARIANTS + parallel(),
        'p.toml:1: running targets are watched side by side: design = "parallel" or "crossover"',
    ),
    "neither": (HEAD + VARIANTS + target("base", "h", ""), "p.toml:10: target.agent: exactly one of process, workload"),
    "both": (
        HEAD + VARIANTS + target("base", "h", 'process = "a"\nworkload = "b"'),
        "p.toml:12: target.workload: exactly one of process, workload",
    ),
    "its own finder": (
        HEAD + VARIANTS + target("base", "h", 'process = "a"\ncomm = "x"'),
        "p.toml:12: target.comm: the agent's own agent.toml says so",
    ),
    "no agent": (
        HEAD + VARIANTS + '[[target]]\nvariant = "base"\nprocess = "a"\n',
        "p.toml:8: target.agent: is missing",
    ),
    "a key that is none": (
        HEAD + VARIANTS + target("base", "h", 'process = "a"\nproces = "a"'),
        "p.toml:12: target.proces: unknown key; did you mean process?",
    ),
    "here and there": (
        HEAD + VARIANTS + parallel() + '[[target]]\nvariant = "fat"\nnode = "z"\npid = 1\n',
        "p.toml:32: targets are here or on agents: this one has no agent, others have",
    ),
    "processes and workloads": (
        HEAD + VARIANTS + parallel() + target("fat", "z", 'workload = "w"'),
        "p.toml:11: processes are watched and workloads are run",
    ),
    "too few": (
        HEAD + VARIANTS + "".join(target(variant, f"{variant}{n}") for variant in ("base", "fat") for n in range(2)),
        "variant base has 2 processes; the process is the replicate, so at least 3 are needed",
    ),
    "one": (
        HEAD + VARIANTS + target("base", "a", 'workload = "w"') + target("fat", "b", 'workload = "w"'),
        "variant base has 1 host; the host is the replicate, so at least 3 are needed",
    ),
    "too few that count": (
        HEAD + VARIANTS + parallel('workload = "w"').replace('"fat2"\n', '"fat2"\nexclude = true\n'),
        "variant fat has 2 hosts; the host is the replicate",
    ),
    "no such variant": (HEAD + VARIANTS + parallel() + target("fa", "z"), "p.toml:33: no variant 'fa'; did you mean fat?"),
    "swap": (HEAD + 'swap = ["deploy"]\n' + VARIANTS + parallel(), "p.toml:4: agents swap their processes by the command of"),
    "one role in a crossover": (
        HEAD.replace("parallel", "crossover") + VARIANTS + crossover() + target("fat", "z"),
        "p.toml:32: node 'z' must be listed under both variants",
    ),
    "two things in a crossover": (
        HEAD.replace("parallel", "crossover")
        + VARIANTS
        + crossover()
        + target("base", "z")
        + target("fat", "z", 'process = "b"'),
        "node 'z' is two different things under its two variants",
    ),
    "one process as two nodes": (
        HEAD + VARIANTS + parallel() + target("fat", "base1", 'process = "node"\nnode = "other"'),
        "p.toml:36: nodes 'base1' and 'other' are one process, node of agent base1: it would count twice",
    ),
    "one process as two nodes of a crossover": (
        '[experiment]\nname = "x"\ndesign = "crossover"\n'
        + VARIANTS
        + crossover()
        + "".join(target(variant, "h0", 'process = "node"\nnode = "other"') for variant in ("base", "fat")),
        "nodes 'h0' and 'other' are one process, node of agent h0: it would count twice",
    ),
    "two variants in parallel": (HEAD + VARIANTS + parallel() + target("fat", "base0"), "node 'base0' is under two variants"),
    "a build": (
        HEAD + '[[variant]]\nname = "base"\nbinary = "./b"\n[[variant]]\nname = "fat"\n' + parallel(),
        "p.toml:6: agents have the builds of their own agent.toml: leave binary out",
    ),
    "a condition": (
        HEAD + VARIANTS + '[[condition]]\nname = "c"\n' + parallel(),
        "p.toml:8: agents run and watch what their own agent.toml names: no [[condition]] beside it",
    ),
    "output of a process": (
        HEAD + VARIANTS + "[[metric]]\nname = \"m\"\nregex = '([0-9]+)'\n" + parallel(),
        "p.toml:10: of processes on agents only prometheus metrics can be read",
    ),
    "a page of a workload": (
        HEAD + VARIANTS + '[[metric]]\nname = "m"\nprometheus = "m_seconds"\n' + parallel('workload = "w"'),
        "p.toml:10: of workloads only regex and json metrics can be read",
    ),
    "a warm-up": (HEAD + "warmup = 1\n" + VARIANTS + parallel(), "p.toml:4: warmup is nothing that an agent can be asked for"),
    "a window of a workload": (
        HEAD + "window = 30\n" + VARIANTS + parallel('workload = "w"'),
        "p.toml:4: window is for processes: a workload runs until it ends",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_named_with_their_line(mistake: str) -> None:
    text, message = MISTAKES[mistake]
    with pytest.raises(UsageError) as caught:
        parsed(text)
    assert message in str(caught.value)
