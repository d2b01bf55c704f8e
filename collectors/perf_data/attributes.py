"""Event attributes: how an event was asked for, and so how its samples are laid out."""

from __future__ import annotations

import struct

from collectors.perf_data.event_names import EventScope, event_name
from profiler.errors import FormatError
from profiler.model.quick_dataclass import dataclass

# struct perf_event_attr up to sample_max_stack, by the kernel's field order; a shorter attribute is filled with zeros.
_ATTRIBUTE = struct.Struct("<IIQQQQQIIQQQQIiQIHH")
PERF_ATTR_SIZE_VER0 = 64


@dataclass(frozen=True, slots=True)
class EventAttributes:
    """``struct perf_event_attr`` as far as reading needs it.

    ``period_or_frequency``: Hz when ``is_frequency``, else the period.  ``ids``: the sample ids that belong to the event.
    ``name``: as in the file's event descriptions, else made from type and config.  ``max_stack`` 0 = the kernel's default.
    """

    type: int
    config: int
    sample_type: int
    read_format: int
    period_or_frequency: int
    is_frequency: bool
    is_inherited: bool
    is_sample_id_all: bool
    is_user_callchain_excluded: bool
    branch_sample_type: int
    user_registers: int
    interrupt_registers: int
    user_stack_bytes: int
    max_stack: int
    ids: tuple[int, ...]
    name: str


def event_scope(flags: int) -> EventScope:
    """From the flag bits of ``struct perf_event_attr``."""
    return EventScope(
        excludes_user=bool(flags >> 4 & 1),
        excludes_kernel=bool(flags >> 5 & 1),
        excludes_hypervisor=bool(flags >> 6 & 1),
        excludes_host=bool(flags >> 19 & 1),
        excludes_guest=bool(flags >> 20 & 1),
        precise_ip=flags >> 15 & 3,
    )


def parse_attributes(data: bytes, ids: tuple[int, ...], name: str, offset: int) -> EventAttributes:
    """One ``perf_event_attr``; fields behind the known ones are ignored, missing ones are 0.  ``FormatError`` for sizes
    that no kernel has written."""
    if len(data) < PERF_ATTR_SIZE_VER0:
        raise FormatError(name, f"event attribute of {len(data)} bytes, at least {PERF_ATTR_SIZE_VER0} expected", offset)
    recorded_bytes = int.from_bytes(data[4:8], "little") or PERF_ATTR_SIZE_VER0
    if not PERF_ATTR_SIZE_VER0 <= recorded_bytes <= 4096:
        raise FormatError(name, f"event attribute says it has {recorded_bytes} bytes", offset + 4)
    known = data[: min(recorded_bytes, _ATTRIBUTE.size)].ljust(_ATTRIBUTE.size, b"\0")
    (event_type, _, config, period, sample_type, read_format, flags, _, _, _, _, branch_sample_type, user_registers,
     user_stack_bytes, _, interrupt_registers, _, max_stack, _) = _ATTRIBUTE.unpack(known)  # fmt: skip
    return EventAttributes(
        type=event_type,
        config=config,
        sample_type=sample_type,
        read_format=read_format,
        period_or_frequency=period,
        is_frequency=bool(flags >> 10 & 1),
        is_inherited=bool(flags >> 1 & 1),
        is_sample_id_all=bool(flags >> 18 & 1),
        is_user_callchain_excluded=bool(flags >> 22 & 1),
        branch_sample_type=branch_sample_type,
        user_registers=user_registers,
        interrupt_registers=interrupt_registers,
        user_stack_bytes=user_stack_bytes,
        max_stack=max_stack,
        ids=ids,
        name=event_name(event_type, config, event_scope(flags)),
    )
