"""Some of a capture's samples."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from profiler.model.arrays import BoolColumn
from profiler.model.capture import Capture
from profiler.model.sample_table import SampleTable, StackState


def selected(capture: Capture, is_kept: BoolColumn) -> Capture:
    """The capture with those samples alone, counted anew; what was lost stays lost."""
    columns = {name: getattr(capture.samples, name)[is_kept] for name in SampleTable.__slots__}
    samples = SampleTable(**columns)
    states = np.bincount(samples.state, minlength=len(StackState)).tolist()
    quality = replace(
        capture.quality,
        samples=len(samples),
        complete=states[StackState.COMPLETE],
        gap_possible=states[StackState.GAP_POSSIBLE],
        rootless=states[StackState.ROOTLESS],
        truncated=states[StackState.TRUNCATED],
        no_user_stack=states[StackState.NO_USER_STACK],
    )
    return replace(capture, samples=samples, quality=quality)
