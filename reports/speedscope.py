"""speedscope files (https://www.speedscope.app/file-format-schema.json): one sampled profile per arm, all threads merged.

What speedscope asks for beyond its schema: ``samples`` and ``weights`` of one length, frame indices root first, no negative
weight, a function one frame only (frames of the same name are never merged by the viewer), and an ``endValue`` that is the
sum of the weights, because percentages are taken of it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from profiler.model.call_stacks import CallFrame, CallStacks
from reports.plain_text import printable
from reports.stack_walk import run_sums, walk

SCHEMA_URL = "https://www.speedscope.app/file-format-schema.json"

_UNITS = {"ns": "nanoseconds", "bytes": "bytes"}  # everything else is "none": speedscope knows no cycles or faults

Number = int | float


@dataclass(slots=True)
class _FrameTable:
    """Frames shared by all profiles of a file, one per name."""

    index: dict[str, int]
    places: list[set[tuple[str, int]]]

    def add(self, name: str, file: str, line: int) -> int:
        row = self.index.setdefault(name, len(self.index))
        if row == len(self.places):
            self.places.append(set())
        if file:
            self.places[row].add((file, line))
        return row

    def as_json(self) -> list[dict[str, str | int]]:
        return [_frame_json(name, self.places[row]) for name, row in self.index.items()]


def render_speedscope(arms: Sequence[CallStacks], name: str, categories_as_roots: bool = False) -> bytes:
    """One profile per arm, in order.  One run: its raw weights; several: the mean per run, rounded to whole nanoseconds so
    that the sum is the rounded mean total.  With ``categories_as_roots`` every stack stands under its leaf category."""
    frames = _FrameTable({}, [])
    profiles = [_profile(stacks, frames, categories_as_roots) for stacks in arms]
    document = {
        "$schema": SCHEMA_URL,
        "shared": {"frames": frames.as_json()},
        "profiles": profiles,
        "name": printable(name),
        "activeProfileIndex": 0,
        "exporter": "slotscope",
    }
    return json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def _profile(stacks: CallStacks, frames: _FrameTable, categories_as_roots: bool) -> dict[str, object]:
    rows = [_shared_row(frames, frame) for frame in stacks.frames]
    roots = [frames.add(f"[{printable(category)}]", "", 0) for category in stacks.categories] if categories_as_roots else []
    category, sums = stacks.category.tolist(), run_sums(stacks).tolist()
    samples, weights = [], []
    for row, frames_root_first in walk(stacks):
        root = [roots[category[row]]] if categories_as_roots else []
        samples.append(root + [rows[frame] for frame in frames_root_first])
        weights.append(sums[row])
    means = _mean_weights(weights, stacks.weight.shape[1], stacks.unit)
    kept = [mean for mean in means if mean]
    return {
        "type": "sampled",
        "name": _profile_name(stacks),
        "unit": _UNITS.get(stacks.unit, "none"),
        "startValue": 0,
        "endValue": sum(kept),
        "samples": [sample for sample, mean in zip(samples, means, strict=True) if mean],
        "weights": kept,
    }


def _profile_name(stacks: CallStacks) -> str:
    runs = stacks.weight.shape[1]
    mean = "" if runs == 1 else f", mean of {runs} runs"
    return printable(f"{stacks.arm} ({stacks.event}{mean})")


def _mean_weights(sums: Sequence[int], runs: int, unit: str) -> list[Number]:
    """Rounding the running sum instead of each weight keeps the total exact.  Units other than ns are too coarse to round."""
    if runs == 1:
        return list(sums)
    if unit != "ns":
        return [weight / runs for weight in sums]
    rounded: list[Number] = []
    running = before = 0
    for weight in sums:
        running += weight
        after = (2 * running + runs) // (2 * runs)
        rounded.append(after - before)
        before = after
    return rounded


def _shared_row(frames: _FrameTable, frame: CallFrame) -> int:
    return frames.add(printable(frame.name) or "[unknown]", printable(frame.file), frame.line)


def _frame_json(name: str, places: set[tuple[str, int]]) -> dict[str, str | int]:
    """File and line only where all frames of this name agree on them."""
    frame: dict[str, str | int] = {"name": name}
    files = {file for file, _ in places}
    if len(files) == 1:
        frame["file"] = files.pop()
        lines = {line for _, line in places}
        if len(lines) == 1 and (line := lines.pop()) > 0:
            frame["line"] = line
    return frame
