"""Whether a decoded capture is what its job was ordered to make: pure, no byte of the agent is trusted.

The container's own checks (every index leads into its table) were made by decoding it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

import numpy as np

from profiler.codec.json_values import Json, to_json
from profiler.errors import UsageError
from profiler.model.capture import Capture
from profiler.model.dso import UNREAD_BUILD, DsoKind
from profiler.model.event import CLOCK_EVENTS, base_event_name
from profiler.model.run import RunIdentity, RunMode
from profiler.model.stack_table import stack_depths
from profiler.protocol.job import JobKind, JobOrder
from profiler.service.ingest.upload_error import NotAcceptable
from profiler.store.records import check_variant_name

_LARGEST_INTEGER = (1 << 63) - 1
_LONGEST_TEXT = 1 << 20
_LONGEST_PATH = 8192
_LONGEST_BUILD_ID = 64
_DEEPEST_STACK = 16_384
# Sums of weights are made in 64-bit integers, over several captures.
_LARGEST_WEIGHT = 1 << 53
# Surrogates that do not stand for bytes which are no UTF-8.
_STRAY_SURROGATES = re.compile("[\ud800-\udc7f\udd00-\udfff]")
_HEX = re.compile(r"([0-9a-f]{2})*")


def captures_expected(order: JobOrder) -> int:
    """How many captures a job makes when nothing is repeated and it watches one process."""
    return {JobKind.ATTACH: order.windows, JobKind.RUN: order.runs, JobKind.SWAP: 0}[order.kind]


def checked_capture(capture: Capture, order: JobOrder) -> Capture:
    """The capture under the identity that ``order`` gives it.  ``NotAcceptable`` when it is not what was ordered, or holds what
    would harm those who read it."""
    for part in (capture.info, capture.quality, capture.events):
        _check_values(to_json(part))
    _check_facts(capture)
    _check_names(capture)
    _check_samples(capture)
    _check_kind(capture, order)
    return replace(capture, info=replace(capture.info, identity=_ordered_identity(capture.info.identity, order)))


def build_ids_of(capture: Capture) -> frozenset[str]:
    """Hex, of the files (neither kernel nor vDSO) in which there are frames without a name of their own; what could not be
    read on the agent's host is no build."""
    rows = np.unique(capture.frames.dso[capture.frames.symbol < 0]).tolist()
    dsos = [capture.dsos[row] for row in rows]
    files = {dso.build_id for dso in dsos if dso.kind == DsoKind.FILE} - {UNREAD_BUILD}
    return frozenset(build_id.hex() for build_id in files if len(build_id) >= 2)


def _ordered_identity(identity: RunIdentity, order: JobOrder) -> RunIdentity:
    try:
        check_variant_name(order.variant)
    except UsageError as error:
        raise NotAcceptable(str(error)) from None
    if not 0 <= identity.position < 1 << 20:
        raise NotAcceptable(f"position {identity.position} does not count the captures of a job")
    return RunIdentity(
        session=order.session,
        variant=order.variant,
        round=order.round,
        mode=identity.mode,
        position=order.round * captures_expected(order) + identity.position,
        instance=order.instance,
        is_whole_run=order.kind is JobKind.RUN and bool(order.instance),
    )


def _check_kind(capture: Capture, order: JobOrder) -> None:
    expected = RunMode.PROFILED if order.is_profiled else RunMode.PLAIN
    if capture.info.identity.mode is not expected:
        raise NotAcceptable(f"mode {capture.info.identity.mode}, but the job is to make captures of mode {expected}")
    if expected is RunMode.PLAIN and (len(capture.samples) or capture.events):
        raise NotAcceptable("a plain capture holds samples")
    if capture.info.outcome.failure:
        return
    for event in capture.events:
        name = base_event_name(event.name)
        if name in CLOCK_EVENTS and order.event not in ("", "auto") and name not in order.event:
            raise NotAcceptable(f"event {event.name!r} was recorded, but {order.event!r} was ordered")
        if order.frequency_hz and event.frequency_hz > order.frequency_hz:
            raise NotAcceptable(f"recorded at {event.frequency_hz} Hz, but {order.frequency_hz} Hz were ordered")


def _check_values(json: Json) -> None:
    """Numbers fit into 64 bits and are finite; texts are UTF-8 or stand for bytes, and of a length that can be shown."""
    waiting: list[Json] = [json]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            _check_text(value, _LONGEST_TEXT)
        elif isinstance(value, Mapping):
            waiting += value.values()
        elif isinstance(value, Sequence):
            waiting += value
        elif isinstance(value, float) and not math.isfinite(value):
            raise NotAcceptable("a number is not finite")
        elif isinstance(value, int) and abs(value) > _LARGEST_INTEGER:
            raise NotAcceptable("an integer is beyond 64 bits")


def _check_text(text: str, longest: int) -> None:
    if len(text) > longest:
        raise NotAcceptable(f"a text of {len(text)} characters; at most {longest} are taken")
    if _STRAY_SURROGATES.search(text):
        raise NotAcceptable("a text holds half of a surrogate pair")


def _check_facts(capture: Capture) -> None:
    info, quality, outcome = capture.info, capture.quality, capture.info.outcome
    counts = (outcome.wall_ns, outcome.user_ns, outcome.system_ns, quality.samples, quality.lost_samples, quality.throttled)
    settings = [number for event in capture.events for number in (event.frequency_hz, event.period)]
    if min(*counts, *settings, info.perf.frequency_hz, info.perf.period, info.program.size_bytes) < 0:
        raise NotAcceptable("a time, count or rate is negative")
    if not _HEX.fullmatch(info.program.build_id):
        raise NotAcceptable(f"the program's build ID is not hexadecimal: {info.program.build_id[:80]!r}")
    try:
        moment = datetime.fromisoformat(info.started_at)
    except ValueError:
        raise NotAcceptable(f"started_at is no time stamp: {info.started_at[:80]!r}") from None
    if moment.tzinfo is None:
        raise NotAcceptable(f"started_at lacks the time zone: {info.started_at!r}")


def _check_names(capture: Capture) -> None:
    names = [event.name for event in capture.events] + [event.unit for event in capture.events]
    if not all(names):
        raise NotAcceptable("an event without a name or a unit")
    for text in capture.strings:
        _check_text(text, _LONGEST_TEXT)
    for dso in capture.dsos:
        _check_text(dso.path, _LONGEST_PATH)
        if "\0" in dso.path or len(dso.build_id) > _LONGEST_BUILD_ID:
            raise NotAcceptable(f"no file has the path or the build ID of {dso.path[:80]!r}")


def _check_samples(capture: Capture) -> None:
    samples = capture.samples
    if len(capture.stacks) and int(stack_depths(capture.stacks.prefix).max()) >= _DEEPEST_STACK:
        raise NotAcceptable(f"a stack of more than {_DEEPEST_STACK} frames")
    if not len(samples):
        return
    if int(samples.weight.min()) < 0 or float(samples.weight.sum(dtype=np.float64)) > _LARGEST_WEIGHT:
        raise NotAcceptable("weights that no recording of this length can have")
    if (samples.time_ns[1:] < samples.time_ns[:-1]).any():
        raise NotAcceptable("samples are not in the order of time")
