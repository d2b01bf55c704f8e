"""Phase windows, worked out by hand on drawn time lines."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiler.analysis.attribution.logical_stacks import expand
from profiler.analysis.attribution.phases import PhaseSelection, select_phase
from profiler.analysis.attribution.stack_patterns import functions_with_name, stacks_through
from profiler.model.analysis_choices import PhaseScope
from profiler.model.capture import Capture
from profiler.model.sample_table import StackState
from support.profile_from_text import DrawnSample, draw, profile_from_text, samples_from_text


def select(text: str, scope: str = "thread", pattern: str = "^phase$") -> tuple[Capture, PhaseSelection]:
    symbolized = profile_from_text(text).symbolized()
    stacks = expand(symbolized)
    marker = functions_with_name(symbolized.functions, re.compile(pattern))[stacks.function()]
    marked = stacks_through(stacks, marker)[stacks.innermost]
    capture = symbolized.capture
    return capture, select_phase(capture, marked[capture.samples.stack], PhaseScope(scope))


def admitted(text: str, scope: str = "thread") -> str:
    """One letter per sample in time order: x = admitted."""
    _, selection = select(text, scope)
    return "".join("x" if value else "." for value in selection.admitted.tolist())


def test_from_the_first_match_until_a_complete_stack_without_it() -> None:
    text = """
    time  0     10     20     30     40    50     60
    ---
          main  main   main   main   main  main   main
          .     phase  phase  phase  .     phase  .
    """
    assert admitted(text) == ".xxx.x."
    _, selection = select(text)
    assert selection.windows_ns == (40 - 10) + (60 - 50)
    assert selection.marked_samples == 4


@pytest.mark.parametrize("state", ["gap", "rootless", "truncated", "none"])
def test_incomplete_stacks_never_end_a_window(state: str) -> None:
    text = f"""
    time   0      10       20       30     40
    state  ok     {state}  {state}  ok     {state}
    ---
           main   main     main     main   main
           phase  .        .        .      .
    """
    assert admitted(text) == "xxx.."
    assert select(text)[1].windows_ns == 30


def test_incomplete_stacks_start_a_window_when_they_match() -> None:
    text = """
    time   0     10        20    30
    state  ok    rootless  gap   ok
    ---
           main  phase     main  main
           .     f         .     .
    """
    assert admitted(text) == ".xx."


def test_inlined_markers_count() -> None:
    text = """
    main  main > phase > f  main
    f     .                 f
    """
    assert admitted(text) == ".x."


def test_a_window_that_is_open_at_the_end_holds_the_last_sample() -> None:
    text = """
    time    0        5         10     25     30
    thread  7/7      7/8       7/7    7/7    7/8
    ---
            main     clone     main   phase  clone
            phase    f         phase  f      f
    """
    assert admitted(text, "thread") == "x.xx."
    assert admitted(text, "process") == "xxxx."
    assert select(text, "process")[1].windows_ns == 26


def test_scopes() -> None:
    text = """
    time    0     10     15     20     25     30    35     40
    thread  7/7   7/7    7/8    9/9    7/8    7/7   7/8    9/9
    ---
            main  main   clone  start  clone  main  clone  start
            .     phase  work   work   work   .     work   work
    """
    assert admitted(text, "thread") == ".x......"
    assert admitted(text, "process") == ".xx.x..."
    assert admitted(text, "host") == ".xxxx..."


def test_windows_of_several_threads_overlap_and_count_once() -> None:
    text = """
    time    0      10     20     30     40     50
    thread  7/7    7/8    7/9    7/7    7/9    7/8
    ---
            main   clone  clone  main   clone  clone
            phase  phase  work   .      work   .
    """
    assert admitted(text, "thread") == "xx...."
    assert admitted(text, "process") == "xxxxx."
    assert select(text, "process")[1].windows_ns == 50
    assert select(text, "thread")[1].windows_ns == 30 + 40


def test_a_renamed_thread_is_the_same_thread() -> None:
    text = """
    time    0         10          20          30
    thread  7/7:main  7/7:renamed  7/7:main   7/7:renamed
    ---
            main      main         main       main
            phase     .            phase      phase
    """
    assert admitted(text) == "x.xx"


def test_equal_thread_numbers_of_two_processes_are_two_threads() -> None:
    text = """
    time    0      10    20     30
    thread  7/7    9/7   7/7    9/7
    ---
            main   main  main   main
            phase  .     phase  .
    """
    assert admitted(text) == "x.x."


def test_samples_of_one_time_keep_their_order_within_the_thread() -> None:
    text = """
    time    0     10     10    10     20
    ---
            main  main   main  main   main
            .     phase  .     phase  .
    """
    assert admitted(text) == ".x.x."


def test_no_match() -> None:
    _, selection = select("main  main\nf  g", pattern="^nothing$")
    assert selection.marked_samples == 0
    assert selection.windows_ns == 0
    assert not selection.admitted.any()


def test_no_samples() -> None:
    capture = draw([]).capture
    for scope in PhaseScope:
        assert len(select_phase(capture, np.zeros(0, np.bool_), scope).admitted) == 0


def by_hand(samples: list[DrawnSample], scope: PhaseScope) -> tuple[list[bool], int]:
    """The policy once more, sample by sample, in plain Python."""
    windows: list[tuple[tuple[int, int], int, int]] = []
    own = [False] * len(samples)
    for thread in {(s.pid, s.tid) for s in samples}:
        open_since: int | None = None
        last = 0
        for number, sample in enumerate(samples):
            if (sample.pid, sample.tid) != thread:
                continue
            is_marked = "phase" in sample.frames
            if is_marked and open_since is None:
                open_since = sample.time_ns
            elif not is_marked and sample.state is StackState.COMPLETE and open_since is not None:
                windows.append((thread, open_since, sample.time_ns))
                open_since = None
            own[number] = open_since is not None
            last = sample.time_ns
        if open_since is not None:
            windows.append((thread, open_since, last + 1))

    def scope_of(pid: int, tid: int) -> tuple[int, ...]:
        return {PhaseScope.THREAD: (pid, tid), PhaseScope.PROCESS: (pid,), PhaseScope.HOST: ()}[scope]

    if scope is PhaseScope.THREAD:
        chosen = own
    else:
        chosen = [
            own[n] or any(scope_of(*t) == scope_of(s.pid, s.tid) and a <= s.time_ns < b for t, a, b in windows)
            for n, s in enumerate(samples)
        ]
    instants = {(scope_of(*thread), instant) for thread, start, end in windows for instant in range(start, end)}
    return chosen, len(instants)


drawn_samples = st.lists(
    st.builds(
        DrawnSample,
        frames=st.sampled_from([("main",), ("main", "phase"), ("main", "phase", "f")]),
        time_ns=st.integers(0, 40),
        state=st.sampled_from(list(StackState)),
        pid=st.sampled_from([7, 9]),
        tid=st.sampled_from([7, 8]),
    ),
    max_size=14,
).map(lambda samples: sorted(samples, key=lambda sample: sample.time_ns))


@given(drawn_samples, st.sampled_from(list(PhaseScope)))
def test_against_the_policy_sample_by_sample(samples: list[DrawnSample], scope: PhaseScope) -> None:
    symbolized = draw(samples).symbolized()
    stacks = expand(symbolized)
    marker = functions_with_name(symbolized.functions, re.compile("^phase$"))[stacks.function()]
    marked = stacks_through(stacks, marker)[stacks.innermost]
    selection = select_phase(symbolized.capture, marked[symbolized.capture.samples.stack], scope)
    chosen, length = by_hand(samples, scope)
    assert selection.admitted.tolist() == chosen
    assert selection.windows_ns == length


def test_samples_from_text_are_what_was_drawn() -> None:
    (first, second) = samples_from_text("weight  3  4\nthread  7/8:w  9\n---\nmain  main\nf  .")
    assert (first.frames, first.weight, first.pid, first.tid, first.thread_name) == (("main", "f"), 3, 7, 8, "w")
    assert (second.frames, second.weight, second.pid, second.tid, second.thread_name) == (("main",), 4, 9, 9, "main")
