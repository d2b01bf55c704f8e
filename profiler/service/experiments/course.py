"""How far an experiment over agents has come: one value, kept whole, from which a restarted aggregator goes on."""

from __future__ import annotations

from enum import StrEnum

from profiler.model.quick_dataclass import dataclass


class CourseState(StrEnum):
    """The last three are final.  FAILED: it cannot be carried out any further, and what was measured is kept."""

    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_final(self) -> bool:
        return self is not CourseState.RUNNING


class Stage(StrEnum):
    """Of a turn, in order.  GATHERING: until every host is there.  SWAPPING, SETTLING: before the first turn of a period.
    MEASURING: ordered, until every job has ended.  ARRIVING: until the captures are in.  KEEPING: judged, and the judgement is
    being carried into the store."""

    GATHERING = "gathering"
    SWAPPING = "swapping"
    SETTLING = "settling"
    MEASURING = "measuring"
    ARRIVING = "arriving"
    KEEPING = "keeping"


@dataclass(frozen=True, slots=True)
class NodeTask:
    """What a node has to do in a stage.  ``job``: its ID, "" = nothing is asked of the node.  ``problem``: why its part does
    not count, "" = nothing is known against it."""

    node: str
    job: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Course:
    """``turn``: which one is under way, from 0; ``attempt``: how often it was begun before.  ``since_ns``: when the stage
    began; ``until_ns``: when it ends, or what is waited for counts as missing; ``start_at_ns``: the common instant of a turn
    that is ordered.  ``is_repeated``: the judgement: nothing of this attempt counts.  ``again``: why the attempt before it did
    not.  ``ending``: why nothing can follow, "" = the next turn.

    ``away``: nodes for which nothing is repeated or waited for.  ``bad_before``: those with a problem in the last attempt.
    ``swapped``: nodes that are the variant of this period; ``unswapped``: nodes that stay out of it, and why.  ``is_settled``:
    the wait before the first window of the period is over."""

    since_ns: int
    retries_left: int
    state: CourseState = CourseState.RUNNING
    detail: str = ""
    stage: Stage = Stage.GATHERING
    turn: int = 0
    attempt: int = 0
    until_ns: int = 0
    start_at_ns: int = 0
    tasks: tuple[NodeTask, ...] = ()
    is_repeated: bool = False
    again: str = ""
    ending: str = ""
    away: tuple[str, ...] = ()
    bad_before: tuple[str, ...] = ()
    swapped: tuple[str, ...] = ()
    unswapped: tuple[NodeTask, ...] = ()
    is_settled: bool = False
