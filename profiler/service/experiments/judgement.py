"""The judgement over a turn: what counts, whether it is made again, and whether anything can follow; pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from profiler.experiment.plan.experiment_plan import PlanTarget
from profiler.experiment.targets.target_window import EXCLUDED
from profiler.service.experiments.course import Course, NodeTask, Stage
from profiler.service.experiments.turns import Turn, TurnPlan


def judged(course: Course, turns: TurnPlan, now_ns: int) -> Course:
    """``course`` with every task's own problem known, and the judgement.

    A turn is made again for a node with a problem, while retries are left.  A node that has one twice in a row is away: nothing
    is made again for it until it has done its part once.
    """
    turn = turns.turns[course.turn]
    problems = {task.node: task.problem for task in course.tasks if task.problem}
    counted = {role.node for role in turn.roles if not role.is_excluded}
    blocking = (problems.keys() & counted) - set(course.away)
    staying = blocking & set(course.bad_before)
    is_repeated = bool(blocking - staying and course.retries_left)
    away = (set(course.away) | staying) - (counted - problems.keys())
    # Whatever happened to a node, it need not be the variant any more that it was.
    swapped = tuple(node for node in course.swapped if node not in problems)
    return replace(
        course,
        stage=Stage.KEEPING,
        since_ns=now_ns,
        is_repeated=is_repeated,
        retries_left=course.retries_left - is_repeated,
        ending="" if is_repeated else nobody_left(turn, {node: problems[node] for node in away & problems.keys()}),
        away=tuple(sorted(away)),
        bad_before=tuple(sorted(blocking)),
        swapped=swapped,
        unswapped=_out_of_period(course, turns, away & problems.keys()),
        is_settled=course.is_settled and len(swapped) == len(course.swapped),
    )


def _out_of_period(course: Course, turns: TurnPlan, nodes: Collection[str]) -> tuple[NodeTask, ...]:
    """Where nodes are swapped, one that stays away is not swapped again and again: the others would wait for it each time."""
    if not turns.needs_swaps:
        return ()
    known = {task.node for task in course.unswapped}
    added = [
        NodeTask(task.node, problem=task.problem) for task in course.tasks if task.node in nodes and task.node not in known
    ]
    return (*course.unswapped, *added)


def nobody_left(turn: Turn, gone: Mapping[str, str]) -> str:
    """Why the experiment cannot go on when ``gone``, nodes with the reason, are not there; "" = it can."""
    for variant, nodes in _nodes_by_variant(turn.roles).items():
        if all(node in gone for node in nodes):
            reasons = "; ".join(f"{node}: {gone[node]}" for node in nodes)
            return f"no node of {variant} is left ({reasons})"
    return ""


def failures(course: Course, turns: TurnPlan) -> dict[str, str]:
    """For each node of a judged turn, why its window does not count; "" = it does."""
    turn = turns.turns[course.turn]
    problems = {task.node: task.problem for task in course.tasks}
    if course.is_repeated:
        first = next(task for task in course.tasks if task.problem and task.node in course.bad_before)
        shared = {role.node: f"made again with its round, because of {first.node}: {first.problem}" for role in turn.roles}
    else:
        shared = _without_partner(turn.roles, turns.plan.baseline, problems)
    return {
        role.node: EXCLUDED if role.is_excluded else problems[role.node] or shared.get(role.node, "") for role in turn.roles
    }


def _without_partner(roles: Sequence[PlanTarget], baseline: str, problems: Mapping[str, str]) -> dict[str, str]:
    """Nodes whose variant has nothing in this turn to be held against."""
    there = {variant for variant, nodes in _nodes_by_variant(roles).items() if any(not problems[node] for node in nodes)}
    found = {}
    for role in roles:
        if role.variant == baseline and not there - {baseline}:
            found[role.node] = "no window of another variant counts beside it"
        elif role.variant != baseline and baseline not in there:
            found[role.node] = f"no window of {baseline} counts beside it"
    return found


def _nodes_by_variant(roles: Sequence[PlanTarget]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for role in roles:
        if not role.is_excluded:
            found.setdefault(role.variant, []).append(role.node)
    return found
