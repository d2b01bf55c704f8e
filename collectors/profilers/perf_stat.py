"""`perf stat` attached to running processes: counts of events over a window."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import IO

from collectors.profilers.perf_control import ControlDescriptors, start_controlled
from collectors.profilers.perf_record import explain_failure
from profiler.errors import CaptureError
from profiler.model.quick_dataclass import dataclass
from profiler.model.run import Metric, PerfSettings

FINISH_ALONE_S = 3.0
FINISH_ASKED_S = 30.0
# perf scales what it counted for a part of the time only; so much of it may be an estimate.
LEAST_COUNTED = 0.9
_UNITS_NS: Mapping[str, float] = MappingProxyType({"ns": 1.0, "nsec": 1.0, "usec": 1e3, "msec": 1e6, "sec": 1e9})
_SEPARATOR = ";"
_OF_CORES = re.compile(r"cpu_(?:core|atom)/(.+)/")


@dataclass(frozen=True, slots=True)
class StatMetric:
    """``event``: as perf names it."""

    name: str
    event: str


def stat_arguments(metrics: Sequence[StatMetric], pids: Sequence[int], control: ControlDescriptors) -> list[str]:
    """Counting in the processes and their future threads and children, from the moment that ``control`` says."""
    events = [part for metric in metrics for part in ("-e", metric.event)]
    return ["perf", "stat", "-x", _SEPARATOR, *events, "-p", ",".join(map(str, pids)), "-D", "-1", *control.option]


class PerfCounter:
    """One running `perf stat`.  ``finish`` or ``abort`` must be called."""

    def __init__(self, process: subprocess.Popen[bytes], messages: IO[bytes], control: int, metrics: Sequence[StatMetric]):
        self._process = process
        self._messages = messages
        self._control = control
        self._metrics = tuple(metrics)
        self._was_asked = False

    def stop(self) -> None:
        """Ends the counting in processes that go on running."""
        self._was_asked = True
        self._process.send_signal(signal.SIGINT)

    def finish(self) -> tuple[Metric, ...]:
        """The counts, in the order of the metrics.  ``CaptureError`` for an event that was not counted."""
        try:
            self._process.wait(FINISH_ASKED_S if self._was_asked else FINISH_ALONE_S)
        except subprocess.TimeoutExpired:
            self.stop()
            try:
                self._process.wait(FINISH_ASKED_S)
            except subprocess.TimeoutExpired:
                self.abort()
                raise CaptureError(f"perf stat did not end within {FINISH_ASKED_S:.0f} s") from None
        return counts(self._metrics, self._close())

    def abort(self) -> None:
        """Ends perf now; what it counted is not wanted."""
        self._process.kill()
        self._process.wait()
        self._close()

    def _close(self) -> str:
        if self._messages.closed:
            return ""
        os.close(self._control)
        self._messages.seek(0)
        text = self._messages.read().decode("utf-8", "replace")
        self._messages.close()
        return text


def start_counting(metrics: Sequence[StatMetric], pids: Sequence[int]) -> PerfCounter:
    """perf attached to the processes; returns when its events are enabled.

    ``CaptureError``: perf is missing, may not count here, or refuses an event.
    """
    messages = tempfile.TemporaryFile()  # noqa: SIM115 -- closed by the counter
    try:
        perf = start_controlled(lambda control: stat_arguments(metrics, pids, control), messages)
    except BaseException:
        messages.close()
        raise
    counter = PerfCounter(perf.process, messages, perf.control, metrics)
    if not perf.is_enabled:
        settings = PerfSettings(event=", ".join(metric.event for metric in metrics))
        raise CaptureError(explain_failure(counter._close().splitlines(), settings))
    return counter


def counts(metrics: Sequence[StatMetric], text: str) -> tuple[Metric, ...]:
    """Values in what `perf stat -x ;` prints: value, unit, event, time counted in ns, percentage of the time that it counted.

    ``CaptureError`` for an event that is not there, not supported here, or counted for a part of the time only.
    """
    lines = [fields for line in text.splitlines() if len(fields := line.split(_SEPARATOR)) >= 5]
    return tuple(_count(metric, lines) for metric in metrics)


def _count(metric: StatMetric, lines: Sequence[Sequence[str]]) -> Metric:
    of_event = [fields for fields in lines if _is_named(fields[2], metric.event)]
    if not of_event:
        only_user = [fields for fields in lines if fields[2] == f"{metric.event}:u"]
        if only_user:
            raise CaptureError(
                f"metric {metric.name!r}: only user space can be counted here: ask for {metric.event}:u, or run "
                "`sudo sysctl kernel.perf_event_paranoid=1`"
            )
        raise CaptureError(f"metric {metric.name!r}: perf stat printed no count of {metric.event}")
    # A kind of core that the program never ran on has nothing to tell.
    seen = [fields for fields in of_event if fields[0] != "<not counted>"] or of_event
    values = [_value(metric, fields) for fields in seen]
    unit = "ns" if of_event[0][1] in _UNITS_NS else ""
    return Metric(metric.name, sum(values), unit, tuple(values))


def _is_named(name: str, event: str) -> bool:
    """Machines with two kinds of cores count each for itself; together they are the event."""
    cores = _OF_CORES.fullmatch(name)
    return name == event or (cores is not None and cores[1] == event)


def _value(metric: StatMetric, fields: Sequence[str]) -> float:
    try:
        value, counted = float(fields[0]), float(fields[4]) / 100
    except ValueError:
        reason = fields[0].strip("<>")
        raise CaptureError(f"metric {metric.name!r}: {metric.event} was {reason} here; `perf list` names the events") from None
    if counted < LEAST_COUNTED:
        raise CaptureError(
            f"metric {metric.name!r}: {metric.event} was counted for {100 * counted:.0f} % of the time only: too many events "
            "at once; leave out some of the stat metrics"
        )
    return value * _UNITS_NS.get(fields[1], 1.0)
