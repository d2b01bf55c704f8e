"""The line that begins a sample: "comm  pid/tid [cpu] time: period event: ..."

Which of the fields are there is the user's choice (perf script -F); their order is not.  A comm may hold anything, so lines are
read from the right: the fields with a shape of their own come first, and what is left of them is the comm.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_NS_DIGITS = 9
_LARGEST_PID = 2**31 - 1
_LARGEST_TIME = 2**64 - 1
_LARGEST_CPU = 2**15 - 1
# perf aligns thread numbers to five columns, and the comm to sixteen where no call stack follows.
_PID_COLUMNS = 5
_COMM_COLUMNS = 16

# A comm has 15 bytes at most; alignment adds to it.
_COMM = r"(?P<comm>(?:.{0,24}\s)?)"
_LONG_COMM = r"(?P<comm>.*?\s)"
_NUMBERS = r"(?P<first>-?\d{1,10})(?:/\s*(?P<second>-?\d{1,10}))?"
_CPU = r"(?:\[(?P<cpu>-?\d{1,9})\]\s+)?(?:[KUHGgSEM]{1,3}\s+)?"
_TIME = r"(?P<seconds>\d{1,20})\.(?P<fraction>\d{1,12}):"
_EVENT = r"(?P<event>(?!PERF_RECORD_)[^\s:]\S*):(?=\s|$)"
_COUNTED = rf"(?:\s+(?:(?P<period>\d{{1,20}})\s+)?{_EVENT}|\s+(?P<bare_period>\d{{1,20}})(?=\s*$))"
_REST = r"(?P<rest>.*)$"

_TIMED = re.compile(rf"^{_COMM}{_NUMBERS}\s+{_CPU}{_TIME}{_COUNTED}?(?!\s+PERF_RECORD_){_REST}")
_TIMED_LONG = re.compile(rf"^{_LONG_COMM}{_NUMBERS}\s+{_CPU}{_TIME}{_COUNTED}{_REST}")
_TIMED_NO_THREAD = re.compile(rf"^(?P<comm>.{{0,24}}?)\s*{_CPU}(?<!\S){_TIME}{_COUNTED}{_REST}")
_TIME_TOKEN = re.compile(r"\d\.\d+:(?:\s|$)")
# A period is aligned to ten columns; without that, the number before it would be part of the comm.
_UNTIMED = (
    re.compile(
        rf"^{_COMM}{_NUMBERS}(?:\s+\[(?P<cpu>-?\d{{1,9}})\])?(?= [ \d]{{10,}} ) +(?P<period>\d{{1,20}}) +{_EVENT}{_REST}"
    ),
    re.compile(rf"^{_COMM}{_NUMBERS}\s+{_CPU}{_EVENT}{_REST}"),
)
_OTHER_RECORD = re.compile(r"\sPERF_RECORD_\w+")


class SampleHeader(NamedTuple):
    """``pid`` equals ``tid`` where only one number is printed, -1 = none is; ``cpu`` -1, ``time_ns`` -1 and ``period`` -1 = not
    printed; ``event`` "" = not printed.  ``rest``: what follows the event: a tracepoint's fields, or the one place."""

    comm: str
    pid: int
    tid: int
    cpu: int
    time_ns: int
    period: int
    event: str
    rest: str


def parse_timed_header(line: str) -> SampleHeader | None:
    """The header in a line that has a time, which nothing but a header has."""
    if not _TIME_TOKEN.search(line):
        return None
    match = _TIMED.match(line) or _TIMED_LONG.match(line) or _TIMED_NO_THREAD.match(line)
    return _header(match) if match else None


def parse_untimed_header(line: str) -> SampleHeader | None:
    """The header in a line without a time; other text may look alike, so frames must follow."""
    for pattern in _UNTIMED:
        match = pattern.match(line)
        if match:
            return _header(match)
    return None


def is_other_record(line: str) -> bool:
    """A record that is no sample (perf script --show-mmap-events and the like)."""
    return _OTHER_RECORD.search(line) is not None


def _header(match: re.Match[str]) -> SampleHeader:
    fields = match.groupdict()
    first, second = _number(fields.get("first")), _number(fields.get("second"))
    cpu = int(fields["cpu"] or -1)
    return SampleHeader(
        comm=_comm(fields["comm"], fields.get("first")),
        pid=first,
        tid=first if fields.get("second") is None else second,
        cpu=cpu if 0 <= cpu <= _LARGEST_CPU else -1,
        time_ns=_time_ns(fields.get("seconds"), fields.get("fraction")),
        period=int(fields.get("period") or fields.get("bare_period") or -1),
        event=fields["event"] or "",
        rest=fields["rest"],
    )


def _number(text: str | None) -> int:
    number = int(text) if text else -1
    return number if -1 <= number <= _LARGEST_PID else -1


def _comm(printed: str, number: str | None) -> str:
    """The comm without the blanks that align it and the number behind it."""
    padding = " " * (1 + max(0, _PID_COLUMNS - len(number or "")))
    is_exact = number is not None and printed.endswith(padding) and "\t" not in printed
    comm = printed.removesuffix(padding) if is_exact else printed.rstrip()
    return comm.lstrip() if len(comm) >= _COMM_COLUMNS or not is_exact else comm


def _time_ns(seconds: str | None, fraction: str | None) -> int:
    if seconds is None or fraction is None:
        return -1
    nanoseconds = int(seconds) * 1_000_000_000 + int(fraction[:_NS_DIGITS].ljust(_NS_DIGITS, "0"))
    return min(nanoseconds, _LARGEST_TIME)
