"""What is refused before the first run."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiler.errors import UsageError
from profiler.experiment.run.preparation import check_frequency


def test_a_rate_above_the_kernel_s_limit(tmp_path: Path) -> None:
    limit = tmp_path / "perf_event_max_sample_rate"
    check_frequency(10**9, limit)  # not known
    limit.write_text("50000\n")
    check_frequency(50000, limit)
    with pytest.raises(UsageError) as raised:
        check_frequency(50001, limit)
    assert str(raised.value) == (
        "--frequency 50001: the kernel allows 50000 samples per second at most; ask for less, or raise the limit: "
        "`sudo sysctl kernel.perf_event_max_sample_rate=50001`"
    )
