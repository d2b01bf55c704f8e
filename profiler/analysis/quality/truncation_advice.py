"""What keeps more of a stack, by how the stacks were recorded."""

from __future__ import annotations

from collections.abc import Collection

from profiler.model.run import PerfSettings

_DUMPS = (16384, 32768, 65528)  # the last is all that a record can hold


def truncation_advice(settings: Collection[PerfSettings]) -> str:
    """``settings``: of all runs whose stacks were cut."""
    methods = {perf.call_graph for perf in settings}
    if methods and not methods & {"dwarf", "none"}:
        return "the kernel keeps no more frames: raise kernel.perf_event_max_stack, or record with --call-graph dwarf"
    dumped = max((perf.dump_bytes for perf in settings), default=0)
    if dumped >= _DUMPS[-1]:
        return "no stack dump can be bigger: build with frame pointers and record with --call-graph fp"
    bigger = next(size for size in _DUMPS if size > (dumped or _DUMPS[0]))
    advice = f"record with a bigger stack dump: --call-graph dwarf,{bigger}"
    return advice if dumped else f"{advice}; of a text, write it with perf script --max-stack 4096"
