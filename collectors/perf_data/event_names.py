"""Names of events that a recording does not describe, made from their attributes as perf makes them."""

from __future__ import annotations

from collectors.perf_data import spec
from profiler.model.quick_dataclass import dataclass

_CACHES = ("L1-dcache", "L1-icache", "LLC", "dTLB", "iTLB", "branch", "node")
_CACHE_OPERATIONS = (("load", "loads"), ("store", "stores"), ("prefetch", "prefetches"))
_MODIFIED_TYPES = (spec.PERF_TYPE_HARDWARE, spec.PERF_TYPE_SOFTWARE, spec.PERF_TYPE_HW_CACHE, spec.PERF_TYPE_RAW)


@dataclass(frozen=True, slots=True)
class EventScope:
    """Whose events are left out, and how exact the recorded addresses are to be: what perf's modifiers say."""

    excludes_user: bool
    excludes_kernel: bool
    excludes_hypervisor: bool
    excludes_host: bool
    excludes_guest: bool
    precise_ip: int

    @property
    def modifiers(self) -> str:
        """ ":u", ":ppp", ...; empty where perf writes none."""
        text = ""
        is_limited = self.excludes_user or self.excludes_kernel or self.excludes_hypervisor
        if is_limited:
            letters = (("k", self.excludes_kernel), ("u", self.excludes_user), ("h", self.excludes_hypervisor))
            text += "".join(letter for letter, is_excluded in letters if not is_excluded)
        text += "p" * self.precise_ip
        is_guest_usually_excluded = is_limited or self.precise_ip > 0
        if self.excludes_host or self.excludes_guest == is_guest_usually_excluded:
            text += "H" * (not self.excludes_host) + "G" * (not self.excludes_guest)
        return f":{text}" if text else ""


def event_name(event_type: int, config: int, scope: EventScope) -> str:
    """perf's name of a generic event with its modifiers; "r..." for what only the recording host could name."""
    return _base_name(event_type, config) + (scope.modifiers if event_type in _MODIFIED_TYPES else "")


def _base_name(event_type: int, config: int) -> str:
    table = {spec.PERF_TYPE_HARDWARE: spec.HARDWARE_EVENTS, spec.PERF_TYPE_SOFTWARE: spec.SOFTWARE_EVENTS}.get(event_type, ())
    if config < len(table):
        return table[config]
    if event_type == spec.PERF_TYPE_TRACEPOINT:
        return f"tracepoint:{config}"
    if event_type == spec.PERF_TYPE_HW_CACHE:
        cache, operation, is_miss = config & 0xFF, config >> 8 & 0xFF, config >> 16
        if cache < len(_CACHES) and operation < len(_CACHE_OPERATIONS) and is_miss < 2:
            singular, plural = _CACHE_OPERATIONS[operation]
            return f"{_CACHES[cache]}-{singular}-misses" if is_miss else f"{_CACHES[cache]}-{plural}"
    return f"r{config:x}" if event_type == spec.PERF_TYPE_RAW else f"type {event_type} config {config:#x}"
