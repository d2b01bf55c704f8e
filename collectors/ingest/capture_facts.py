"""What a recording says of itself, put where a capture's own information is empty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from collectors.ingest.branch_stacks import has_branch_call_stacks
from collectors.perf_data import spec
from collectors.perf_data.attributes import EventAttributes
from collectors.perf_data.reader import Recording
from collectors.perf_data.sample_layout import sample_layout
from profiler.model.event import CLOCK_EVENTS, Event, base_event_name
from profiler.model.run import CaptureInfo, HostFacts, PerfSettings

# cpu-clock and task-clock, whatever name the recording gives them.
_CLOCK_CONFIGS = (0, 1)


def events_of(attributes: Sequence[EventAttributes]) -> tuple[Event, ...]:
    return tuple(_event(event) for event in attributes)


def _event(attributes: EventAttributes) -> Event:
    base = base_event_name(attributes.name)
    is_clock = base in CLOCK_EVENTS or (attributes.type == spec.PERF_TYPE_SOFTWARE and attributes.config in _CLOCK_CONFIGS)
    return Event(
        name=attributes.name,
        unit="ns" if is_clock else base,
        frequency_hz=attributes.period_or_frequency if attributes.is_frequency else 0,
        period=0 if attributes.is_frequency else attributes.period_or_frequency,
    )


def completed_info(info: CaptureInfo, recording: Recording) -> CaptureInfo:
    """``info`` with host, perf settings and command from the recording where it has none."""
    features = recording.features
    host = info.host if info.host != HostFacts() else HostFacts(
        hostname=features.hostname,
        kernel=features.osrelease,
        architecture=features.arch,
        cpu=features.cpudesc,
        cpu_count=features.nrcpus,
    )  # fmt: skip
    perf = info.perf if info.perf != PerfSettings() else _perf_settings(recording)
    return replace(info, host=host, perf=perf, command=info.command or recorded_command(features.cmdline))


def _perf_settings(recording: Recording) -> PerfSettings:
    main = _main_event(recording.attributes)
    event = _event(main)
    return PerfSettings(
        event=event.name,
        frequency_hz=event.frequency_hz,
        period=event.period,
        call_graph=_call_graph(main),
        dump_bytes=main.user_stack_bytes if main.sample_type & spec.PERF_SAMPLE_STACK_USER else 0,
        perf_version=recording.features.version,
        perf_command=recording.features.cmdline,
    )


def _main_event(attributes: Sequence[EventAttributes]) -> EventAttributes:
    """The event that an analysis shows by default: a clock, else cycles, else the first one that is not perf's bookkeeping."""
    clocks = [event for event in attributes if _event(event).unit == "ns"]
    cpu_clocks = [event for event in clocks if event.config == 0]
    counting = [event for event in attributes if base_event_name(event.name) != "dummy"]
    cycles = [event for event in counting if base_event_name(event.name) in ("cycles", "cpu-cycles")]
    return [*cpu_clocks, *clocks, *cycles, *counting, *attributes][0]


def _call_graph(attributes: EventAttributes) -> str:
    if attributes.sample_type & spec.PERF_SAMPLE_STACK_USER:
        return "dwarf"
    if not attributes.sample_type & spec.PERF_SAMPLE_CALLCHAIN:
        return "none"
    return "lbr" if has_branch_call_stacks(sample_layout(attributes)) else "fp"


def recorded_command(cmdline: Sequence[str]) -> tuple[str, ...]:
    """The program's own argument list in perf's: what follows "--"."""
    arguments = tuple(cmdline)
    return arguments[arguments.index("--") + 1 :] if "--" in arguments else arguments
