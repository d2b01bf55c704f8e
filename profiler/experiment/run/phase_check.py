"""Whether a phase is found in a run: asked once, so that a typing error does not cost a whole session."""

from __future__ import annotations

from profiler.model.capture import Capture
from symbolize.locate import Locator


def check_phase(capture: Capture, phase: str, locator: Locator) -> None:
    """``AnalysisError`` that lists the nearest names when no stack of the capture matches."""
    from profiler.pipeline import AnalysisOptions, Arm, arm_costs
    from symbolize.cache import SymbolCache, default_cache_directory
    from symbolize.symbolizer import Symbolizer

    symbolizer = Symbolizer(locator, SymbolCache(default_cache_directory()))
    arm_costs(Arm(capture.info.identity.variant, (capture,)), AnalysisOptions(phase=phase), symbolizer)
