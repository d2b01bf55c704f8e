"""Merged call stacks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from profiler.analysis.attribution.call_stacks import merge_call_stacks, run_tree
from profiler.model.call_stacks import CallFrame, CallStacks
from support.attribution import attributed, rules
from support.profile_from_text import CPU_CLOCK, profile_from_text

RULES = rules("[[rule]]\ncategory = \"hashing\"\nfunction = '^sha::'\n")


def merged(*texts: str) -> CallStacks:
    runs = [attributed(profile_from_text(text).symbolized(), RULES) for text in texts]
    return merge_call_stacks("arm", CPU_CLOCK, [run_tree(run) for run in runs])


def folded(stacks: CallStacks) -> dict[str, list[int]]:
    found = {}
    for row, weights in enumerate(stacks.weight.tolist()):
        path, walk = [], row
        while walk >= 0:
            path.append(stacks.frames[stacks.frame[walk]].name)
            walk = int(stacks.prefix[walk])
        if any(weights):
            found[";".join(reversed(path))] = weights
    return found


def test_runs_are_columns_and_equal_functions_are_one_row() -> None:
    first = "weight  1  2  4\n---\nmain  main  main\nf@a.c:1 > sha::g@b.c:2  f@a.c:7 > sha::g@b.c:9  ."
    second = "weight  8  16\n---\nmain  start\nf > sha::g  f"
    stacks = merged(first, second)
    assert folded(stacks) == {"main;f;sha::g": [3, 8], "main": [4, 0], "start;f": [0, 16]}
    assert (stacks.arm, stacks.event, stacks.unit, stacks.processes.names) == ("arm", "cpu-clock", "ns", ("app",))
    of_frames = [stacks.frames[row].category for row in stacks.frame]
    assert [stacks.categories[row] for row in stacks.category] == of_frames


def test_the_heaviest_place_of_a_function_is_shown() -> None:
    stacks = merged("weight  1  5\n---\nmain  main\nsha::g@b.c:2  sha::g@b.c:9")
    assert stacks.frames == (CallFrame("main", "", 0, "other"), CallFrame("sha::g", "b.c", 9, "hashing"))


def test_stacks_without_weight_are_left_out() -> None:
    stacks = merged("weight  0  5\n---\nmain  main\ngone  kept")
    assert [frame.name for frame in stacks.frames] == ["kept", "main"]


def test_no_runs() -> None:
    stacks = merged()
    assert len(stacks.prefix) == 0
    assert stacks.weight.shape == (0, 0)
    assert (stacks.processes.names, len(stacks.processes.weight)) == ((), 0)


def test_a_stack_belongs_to_the_processes_that_had_it() -> None:
    """Two runs with the processes "app" (pid 7) and "child" (pid 8)."""
    trees = []
    for weights in ("1  2  4  0", "8  16  32  64"):
        symbolized = profile_from_text(
            f"weight  {weights}\nthread  7  8  8  7\n---\nmain  main  main  main\n.  .  f  g"
        ).symbolized()
        capture = symbolized.capture
        strings = (*capture.strings, "child")
        of_pid = {7: capture.strings.index("app"), 8: len(capture.strings)}
        process_name = np.array([of_pid[pid] for pid in capture.threads.pid.tolist()], np.int32)
        threads = replace(capture.threads, process_name=process_name)
        symbolized = replace(symbolized, capture=replace(capture, strings=strings, threads=threads))
        trees.append(run_tree(attributed(symbolized, RULES)))
    stacks = merge_call_stacks("arm", CPU_CLOCK, trees)
    assert folded(stacks) == {"main": [3, 24], "main;f": [4, 32], "main;g": [0, 64]}
    found = {
        (stacks.frames[stacks.frame[stack]].name, stacks.processes.names[process]): weight
        for stack, process, weight in zip(
            stacks.processes.stack, stacks.processes.process.tolist(), stacks.processes.weight.tolist(), strict=True
        )
    }
    assert found == {("main", "app"): 9, ("main", "child"): 18, ("f", "child"): 36, ("g", "app"): 64}
