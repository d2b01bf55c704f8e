"""Failed runs in words: made again, or left out."""

from __future__ import annotations

from profiler.analysis.quality.failed_runs import failed_runs
from profiler.model.run import CaptureInfo, RunIdentity, RunMode, RunOutcome
from support.arms import arm


def info(round_number: int, position: int, failure: str = "", instance: str = "") -> CaptureInfo:
    identity = RunIdentity("s", "a", round_number, RunMode.PLAIN, position, instance=instance)
    return CaptureInfo(identity, outcome=RunOutcome(failure=failure))


def test_runs_that_were_made_again_and_those_that_were_not() -> None:
    failed = (info(0, 1, "disturbed: rain"), info(1, 4, "exit code 3"))
    costs = arm("a", {}, plain=(info(0, 2), info(2, 5)), failed=failed, infos=())
    found = failed_runs([costs])
    assert found.repeated == ("a, round 1, plain: disturbed: rain",)
    assert found.left_out == ("a, round 2, plain: exit code 3",)


def test_windows_of_a_process_share_a_line() -> None:
    failed = (info(0, 1, "excluded by the plan", "n8"), info(1, 3, "excluded by the plan", "n8"), info(1, 4, "gone", "n7"))
    costs = arm("a", {}, plain=(info(0, 0, instance="n1"), info(1, 2, instance="n1")), failed=failed, infos=())
    assert failed_runs([costs]).left_out == ("a, n8, 2 windows: excluded by the plan", "a, n7, 1 window: gone")
    assert failed_runs([costs]).repeated == ()
