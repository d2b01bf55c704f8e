"""The OpenAPI description against the running aggregator, by schemathesis: whatever is sent, nothing is a fault of the server,
every answer is as described, and memory stays bounded."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from profiler.codec.json_values import to_json
from profiler.protocol.addresses import HELLO
from profiler.service.access.token_registry import Scope
from profiler.service.api.answers import JobSubmission
from profiler.service.api.settings import Limits, RateLimit, ServiceSettings
from support.aggregators import attach_order, hello
from support.served_aggregator import ServedAggregator, served_with, token_of

CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
# Bodies are at most 4 MiB, and at most two dozen threads of the test's client send at once.
MOST_MEMORY_BYTES = 400 << 20


def run_schemathesis(aggregator: ServedAggregator, secret: str, directory: Path, *options: str) -> None:
    command = [str(Path(sys.executable).parent / "schemathesis"), "run", f"{aggregator.url}/openapi.json"]
    command += ["-H", f"Authorization: Bearer {secret}", "--checks", CHECKS, "--generation-deterministic", "--no-color"]
    environment = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    ended = subprocess.run(
        [*command, *options], cwd=directory, env=environment, capture_output=True, text=True, timeout=3600, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert aggregator.peak_bytes < MOST_MEMORY_BYTES
    with aggregator.client() as client:
        assert client.get("/readyz").status_code == 200


def check_description(directory: Path, *options: str) -> None:
    """As an agent and as an operator, with an agent, a job and a session that exist."""
    store = directory / "store"
    agent, operator = token_of(store, "host1", Scope.AGENT), token_of(store, "alice", Scope.OPERATOR)
    unlimited = RateLimit(1e6, 1e6)
    settings = ServiceSettings(longest_wait_s=0.1, limits=Limits(by_address=unlimited, by_token=unlimited))
    with served_with(store, settings) as aggregator:
        with aggregator.client(agent) as client:
            assert client.post(HELLO, json=to_json(hello())).status_code == 200
        with aggregator.client(operator) as client:
            assert client.post("/api/v1/jobs", json=to_json(JobSubmission("host1", attach_order()))).status_code == 201
        run_schemathesis(aggregator, agent, directory, "--include-path-regex", "^/api/v1/agent/", *options)
        run_schemathesis(aggregator, operator, directory, "--exclude-path-regex", "^/api/v1/agent/", *options)
        assert "Traceback" not in aggregator.log.read_text()
        assert " ERROR " not in aggregator.log.read_text()


def test_nothing_that_is_sent_is_a_fault_of_the_server(tmp_path: Path) -> None:
    check_description(tmp_path, "--phases", "fuzzing", "--max-examples", "5")


@pytest.mark.full
def test_nothing_that_is_sent_for_long_is_a_fault_of_the_server(tmp_path: Path) -> None:
    check_description(tmp_path, "--max-examples", "300")
