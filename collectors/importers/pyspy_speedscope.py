"""py-spy's speedscope files (`py-spy record --format speedscope`): a profile for each thread, every sample on its own."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from collectors.importers.pyspy_tables import PySpyFrame, PySpyTables, PySpyThread, number_or_unknown, with_label
from profiler.errors import FormatError
from profiler.model.capture import Capture
from profiler.model.run import CaptureInfo

MOST_BYTES = 256 << 20
_SCHEMA = b"speedscope.app/file-format-schema.json"
_EXPORTER = "py-spy"
_PROFILE_NAME = re.compile(r'(?:Process (?P<pid>\d+) )?Thread (?:0x[0-9A-Fa-f]+|(?P<tid>\d+))(?: "(?P<name>.*)")?', re.DOTALL)
_LARGEST_LINE = 2**31 - 1


def is_speedscope(head: bytes) -> bool:
    """Whether a file that begins with ``head`` is one of speedscope's, whoever wrote it."""
    return head.lstrip().startswith(b"{") and _SCHEMA in head.replace(rb"\/", b"/")


def read_pyspy_speedscope(stream: BinaryIO, name: str, info: CaptureInfo) -> Capture:
    """The capture of a file that py-spy wrote: one sample for each of its, without times, since nothing tells when a thread
    was idle.  ``FormatError`` for files of other programs and for damaged ones."""
    data = stream.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise FormatError(name, f"more than {MOST_BYTES >> 20} MB: record shorter, or with --format raw")
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise FormatError(name, f"not valid JSON ({error}): the file may have been cut short") from None
    exporter = document.get("exporter") if isinstance(document, dict) else None
    if not isinstance(exporter, str) or not exporter.startswith(_EXPORTER):
        raise FormatError(name, f"a speedscope file of {exporter or 'an unnamed program'!r}: only those of py-spy can be read")
    return _Reader(name, _frames(document, name)).capture(document, info)


def _frames(document: Mapping[str, Any], name: str) -> list[PySpyFrame]:
    shared = document.get("shared")
    listed = shared.get("frames") if isinstance(shared, dict) else None
    if not isinstance(listed, list) or not all(isinstance(frame, dict) for frame in listed):
        raise FormatError(name, "no list of frames: damaged")
    return [_frame(frame) for frame in listed]


def _frame(frame: Mapping[str, Any]) -> PySpyFrame:
    function, file, line = frame.get("name"), frame.get("file"), frame.get("line")
    is_line = isinstance(line, int) and 0 < line <= _LARGEST_LINE
    return PySpyFrame(str(function or ""), file if isinstance(file, str) else "", int(line or 0) if is_line else 0)


@dataclass(slots=True)
class _Reader:
    """``stacks``: (labels, row of the stack) by the frames of a sample; ``period_s``: what each sample weighs."""

    name: str
    frames: Sequence[PySpyFrame]
    tables: PySpyTables = field(default_factory=PySpyTables)
    stacks: dict[tuple[int, ...], tuple[tuple[str, ...], int]] = field(default_factory=dict)
    period_s: float = 0.0

    def capture(self, document: Mapping[str, Any], info: CaptureInfo) -> Capture:
        profiles = document.get("profiles")
        if not isinstance(profiles, list):
            raise self.error("no list of profiles")
        for number, profile in enumerate(profiles):
            self._profile(profile, f"profile {number}")
        rate_hz = round(1 / self.period_s) if self.period_s else 0
        notes = () if self.tables.counts else ("every thread was idle: there are no samples",)
        return self.tables.capture(self.name, info, rate_hz, notes)

    def error(self, what: str) -> FormatError:
        return FormatError(self.name, f"{what}: damaged")

    def _profile(self, profile: object, where: str) -> None:
        if not isinstance(profile, dict) or profile.get("type") != "sampled":
            raise self.error(f"{where} is not a sampled one")
        samples, weights = profile.get("samples"), profile.get("weights")
        if not isinstance(samples, list) or not isinstance(weights, list) or len(samples) != len(weights):
            raise self.error(f"{where} has not as many weights as samples")
        self._check_weights(weights, where)
        named = _thread_of(str(profile.get("name") or ""))
        threads: dict[tuple[str, ...], int] = {}
        for sample in samples:
            labels, stack = self._stack(sample, where)
            if labels not in threads:
                threads[labels] = self._thread(named, labels)
            self.tables.add(threads[labels], stack, 1)

    def _check_weights(self, weights: Sequence[object], where: str) -> None:
        for weight in set(weights) if all(isinstance(weight, int | float) for weight in weights) else {None}:
            if not isinstance(weight, int | float) or not 1e-6 <= weight <= 1e6:
                raise self.error(f"{where} has a sample that does not weigh its period in seconds")
            self.period_s = self.period_s or float(weight)
            if float(weight) != self.period_s:
                raise self.error(f"{where} has samples of different weight")

    def _stack(self, sample: object, where: str) -> tuple[tuple[str, ...], int]:
        """(names of the processes and the thread, row of the stack)."""
        if not isinstance(sample, list) or not all(type(row) is int and 0 <= row < len(self.frames) for row in sample):
            raise self.error(f"{where} has a sample whose frames are not there")
        key = tuple(sample)
        if key not in self.stacks:
            frames = [self.frames[row] for row in key]
            labels = []
            while frames and _is_label(frames[0]):
                labels.append(frames.pop(0).name)
            self.stacks[key] = tuple(labels), self.tables.stack(frames)
        return self.stacks[key]

    def _thread(self, named: PySpyThread, labels: Sequence[str]) -> int:
        thread = named
        for label in labels:
            thread = with_label(thread, label) or thread
        # The profile's name has the last word about numbers: it is of this thread alone.
        return self.tables.thread(thread._replace(**_told(named)))


def _told(thread: PySpyThread) -> dict[str, Any]:
    return {key: value for key, value in thread._asdict().items() if value not in (-1, "")}


def _is_label(frame: PySpyFrame) -> bool:
    return not frame.file and not frame.line and with_label(PySpyThread(), frame.name) is not None


def _thread_of(profile_name: str) -> PySpyThread:
    found = _PROFILE_NAME.fullmatch(profile_name)
    if found is None:
        return PySpyThread(name=profile_name)
    return PySpyThread(number_or_unknown(found["pid"]), "", number_or_unknown(found["tid"]), found["name"] or "")
