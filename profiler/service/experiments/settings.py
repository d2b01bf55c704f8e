"""How long an experiment over agents waits for what."""

from __future__ import annotations

from profiler.model.quick_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class RoundSettings:
    """``lead_s``: from the order of a round to its beginning: the longest time between two looks of an agent at its jobs, and
    the time that a profiler takes to attach; a round that is made again gets twice as long.  ``largest_skew_s``: how far from
    the common instant a node may begin, beyond what its clock may be wrong by, which is ``clock_error_s`` at most.
    ``silent_s``: after so long without a word a host is not there.  ``return_s``: how long is waited for one.  ``report_s``:
    after the end of its work, until a job must have been reported.  ``arrival_s``: until its captures must be in.
    ``longest_run_s``: of a workload without a timeout.  ``swap_s``: of a swap."""

    lead_s: float = 15.0
    largest_skew_s: float = 0.05
    clock_error_s: float = 0.5
    silent_s: float = 45.0
    return_s: float = 300.0
    report_s: float = 120.0
    arrival_s: float = 900.0
    longest_run_s: float = 3600.0
    swap_s: float = 600.0
