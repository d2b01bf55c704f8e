"""Why time stands in its category, for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from profiler.model.explanation import Explanation
from reports.plain_text import printable
from reports.quantities import Scale, counted, percent, scale_for
from reports.terminal_table import TerminalStyle, wrap

_SHOWN_FRAMES = 30


def render_explanations(explanations: Sequence[Explanation], unit: str, limit: int, style: TerminalStyle) -> str:
    """One block per way in which samples came to their category, heaviest first; ``limit`` 0 = all; ends with a newline."""
    shown = explanations[:limit] if limit else explanations
    scale = scale_for([explanation.weight / explanation.runs for explanation in explanations], unit)
    blocks = [_block(explanation, scale, style) for explanation in shown]
    if len(shown) < len(explanations):
        rest = explanations[len(shown) :]
        weight = _per_run(sum(explanation.weight for explanation in rest), rest[0].runs, scale)
        blocks.append(f"{counted(len(rest), 'more way')} with {weight} in all (--limit 0 shows them)")
    return "\n\n".join(blocks) + "\n"


def _block(explanation: Explanation, scale: Scale, style: TerminalStyle) -> str:
    lines = [
        wrap(
            f"{printable(explanation.function)}: {_per_run(explanation.weight, explanation.runs, scale)}, "
            f"{percent(explanation.share)}, {counted(explanation.samples, 'sample')}{_in_runs(explanation.runs)}",
            style,
        ),
        wrap(f"category {printable(explanation.category)}{_owner(explanation)}", style, "  "),
        wrap(_rule(explanation), style, "  "),
    ]
    passed = [f"{printable(frame.function)}: {printable(frame.reason)}" for frame in explanation.passed_over]
    if passed:
        lines += ["  passed over, innermost first:", *(wrap(line, style, "    ") for line in passed[:_SHOWN_FRAMES])]
    lines += ["  heaviest such stack, innermost first:"]
    lines += [wrap(function, style, "    ") for function in _cut(explanation.stack_leaf_first)]
    return "\n".join(lines)


def _per_run(weight: int, runs: int, scale: Scale) -> str:
    return scale.quantity(weight / runs) + (" per run" if runs > 1 else "")


def _in_runs(runs: int) -> str:
    return f" in {counted(runs, 'run')}" if runs > 1 else ""


def _owner(explanation: Explanation) -> str:
    return "" if explanation.owner == explanation.category else f", charged to {printable(explanation.owner)} in the owner view"


def _rule(explanation: Explanation) -> str:
    if not explanation.rule_origin:
        return "no rule matches any frame of the stack"
    return (
        f"because {printable(explanation.named_by)} matches {printable(explanation.rule_origin)}: "
        f"{printable(explanation.rule_pattern)}"
    )


def _cut(functions: Sequence[str]) -> list[str]:
    if len(functions) <= _SHOWN_FRAMES:
        return [printable(function) for function in functions]
    left_out = counted(len(functions) - _SHOWN_FRAMES, "more frame")
    return [*(printable(function) for function in functions[:_SHOWN_FRAMES]), f"... {left_out}"]
