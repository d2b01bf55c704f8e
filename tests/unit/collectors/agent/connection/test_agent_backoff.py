"""Waits between tries: jitter over all of the bound, which doubles and stays."""

from __future__ import annotations

import io
import random

from collectors.agent.agent_log import AgentLog
from collectors.agent.connection.backoff import Backoff


def test_waits_are_anywhere_below_a_bound_that_doubles() -> None:
    for failures, bound in ((0, 0.5), (1, 1.0), (4, 8.0), (7, 60.0), (1000, 60.0)):
        waits = [Backoff(random=random.Random(seed), failures=failures).failed() for seed in range(400)]
        assert max(waits) <= bound
        assert min(waits) < 0.05 * bound
        assert max(waits) > 0.95 * bound
        assert 0.45 * bound < sum(waits) / len(waits) < 0.55 * bound  # uniform: half, 400 draws are within 3 %


def test_what_the_server_asks_for_is_kept_and_success_begins_anew() -> None:
    backoff = Backoff(failures=9)
    assert backoff.failed(30.0) >= 30.0
    backoff.succeeded()
    assert backoff.failed() <= 0.5


def test_the_token_is_in_no_line_whatever_is_logged() -> None:
    stream = io.StringIO()
    log = AgentLog(stream, "slsc_secret_secret")
    log("the server said: Bearer slsc_secret_secret\nand more\x1b[31m")
    lines = stream.getvalue().splitlines()
    assert len(lines) == 1
    assert "slsc_secret" not in lines[0]
    assert "Bearer [token]\\x0aand more\\x1b[31m" in lines[0]
