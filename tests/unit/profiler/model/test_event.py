"""Names of events as perf writes them."""

from __future__ import annotations

import pytest

from profiler.model.event import split_event_name


@pytest.mark.parametrize(
    ("name", "base", "modifiers"),
    [
        ("cycles", "cycles", ""),
        ("cycles:ppp", "cycles", "ppp"),
        ("cpu-clock:u", "cpu-clock", "u"),
        ("dummy:HG", "dummy", "HG"),
        ("sched:sched_switch", "sched:sched_switch", ""),
        ("sched:sched_switch:u", "sched:sched_switch", "u"),
        ("cpu-clock/freq=1999/", "cpu-clock", ""),
        ("task-clock/period=7/u", "task-clock", "u"),
        ("cpu/event=0x3c,umask=0x0/", "cpu/event=0x3c,umask=0x0/", ""),
        ("cs_etm/autofdo/u", "cs_etm/autofdo/", "u"),
        ("cs_etm/autofdo/", "cs_etm/autofdo/", ""),
        ("probe:main/x", "probe:main/x", ""),
        ("LOAD:ldlat=64:pinned", "LOAD:ldlat=64:pinned", ""),
        ("", "", ""),
        (":u", ":u", ""),
    ],
)
def test_base_and_modifiers(name: str, base: str, modifiers: str) -> None:
    assert split_event_name(name) == (base, modifiers)
