"""agent.toml: what is read, and one clear line with its place for whatever cannot work."""

from __future__ import annotations

from pathlib import Path

import pytest

from collectors.agent.config.agent_config import AgentConfig, WorkloadVariant
from collectors.agent.config.agent_file import read_agent_file
from collectors.targets.target_finder import TargetFinder
from profiler.errors import UsageError
from profiler.protocol.hello import AgentLimits, OfferedTarget, OfferedWorkload, TargetProfiler

HEAD = """\
server = "https://aggregator:8640"
token_file = "token"
spool = "spool"
"""
BODY = """
[limits]
longest_job = "2 min"
frequency = 997
spool_bytes = "3 MiB"
cpu_percent = 7.5

[[target]]
name = "node"
comm = "^ethlambda$"
metrics = "http://127.0.0.1:5054/metrics"
variants = ["base", "fat"]
swap = ["/usr/local/bin/deploy", "{variant}"]

[[workload]]
name = "skip-slots"
command = ["{binary}", "skip-slots"]
directory = "states"
[workload.variants]
base = "/opt/lcli-base"
fat = "lcli-fat"
"""
TOKEN = "slsc_" + "x" * 43


PYTHON = """\
[[target]]
name = "tasks"
comm = "celery"
profiler = "py-spy"
native = true
"""


def read(directory: Path, text: str, token: str = TOKEN, mode: int = 0o600) -> AgentConfig:
    (directory / "token").write_text(token + "\n")
    (directory / "token").chmod(mode)
    path = directory / "agent.toml"
    path.write_text(text)
    path.chmod(0o644)
    return read_agent_file(path)


def test_everything_is_read(tmp_path: Path) -> None:
    config = read(tmp_path, HEAD + BODY)
    assert config.server == "https://aggregator:8640"
    assert config.token == TOKEN
    assert config.spool == tmp_path / "spool"
    assert config.limits == AgentLimits(120.0, 997, 3 * 1024 * 1024, 7.5)
    target, workload = config.targets[0], config.workloads[0]
    assert target.finder == TargetFinder(comm="^ethlambda$")
    assert target.swap == ("/usr/local/bin/deploy", "{variant}")
    assert workload.variants == (
        WorkloadVariant("base", "/opt/lcli-base"),
        WorkloadVariant("fat", str(tmp_path / "lcli-fat")),
    )
    assert workload.directory == str(tmp_path / "states")
    assert config.offer.targets == (OfferedTarget("node", ("base", "fat"), has_metrics=True),)
    assert config.offer.workloads == (OfferedWorkload("skip-slots", ("base", "fat")),)


def test_a_python_process_is_offered_as_one(tmp_path: Path) -> None:
    config = read(tmp_path, HEAD + PYTHON)
    assert (config.targets[0].profiler, config.targets[0].has_native) == (TargetProfiler.PYSPY, True)
    assert config.offer.targets == (OfferedTarget("tasks", profiler=TargetProfiler.PYSPY),)


def test_limits_that_are_not_given_hold_all_the_same(tmp_path: Path) -> None:
    assert read(tmp_path, HEAD).limits == AgentLimits(3600.0, 4999, 2 * 1024**3, 20.0)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        (HEAD.replace("spool", "spol"), 3, "unknown key 'spol'; did you mean spool?"),
        (HEAD.replace("https", "http"), 1, "insecure = true"),
        (HEAD.replace("https://aggregator", "https://me:pw@aggregator"), 1, "expected an address"),
        (HEAD.replace(":8640", ":8640/path"), 1, "expected an address"),
        (HEAD.replace('"token"', '"no-token"'), 2, "No such file"),
        (HEAD.replace('"token"', '"to\\u0000ken"'), 2, "token_file: 'to\\x00ken': a zero byte"),
        (HEAD + 'ca = "missing.pem"\n', 4, "no such file"),
        (HEAD + BODY.replace("frequency", "frequenzy"), 7, "limits.frequenzy: unknown key; did you mean frequency?"),
        (HEAD + BODY.replace('"3 MiB"', '"3 MiX"'), 8, "expected bytes"),
        (HEAD + BODY.replace('comm = "^ethlambda$"', "pid = 1\ncgroup = 'x'"), 11, "exactly one of"),
        (HEAD + BODY.replace('"{variant}"', '"x"'), 16, "{variant} is missing"),
        (HEAD + BODY.replace('"{binary}"', '"x"'), 20, "{binary} is missing"),
        (HEAD + BODY.replace("^ethlambda$", "(ethlambda"), 13, "not a regular expression"),
        (HEAD + BODY.replace('swap = ["/usr/local/bin/deploy", "{variant}"]', ""), 11, "variants and swap go together"),
        (HEAD + BODY.replace('name = "node"', 'name = "../node"'), 12, "use letters"),
        (HEAD + BODY + '[[workload]]\nname = "skip-slots"\ncommand = ["{binary}"]\nvariants = { a = "/a" }\n', 26, "another"),
        (HEAD + "[[target]\n", 4, "not valid TOML"),
        (HEAD + PYTHON.replace("py-spy", "pyspy"), 7, "'pyspy': expected 'perf' or 'py-spy'"),
        (HEAD + PYTHON.replace('comm = "celery"', 'unit = "celery.service"'), 7, "find it by pid or comm"),
        (HEAD + PYTHON.replace('"py-spy"', '"perf"'), 8, "perf always records native frames"),
        (HEAD + PYTHON + 'metrics = "http://127.0.0.1:1/metrics"\n', 9, "read beside perf only"),
    ],
)
def test_a_mistake_is_told_with_its_line(tmp_path: Path, text: str, line: int, words: str) -> None:
    with pytest.raises(UsageError) as error:
        read(tmp_path, text)
    assert str(error.value).startswith(f"{tmp_path / 'agent.toml'}:{line}: ")
    assert words in str(error.value)
    assert str(error.value).count("agent.toml:") == 1


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.1.2.3", "[::1]"])
def test_http_is_enough_on_this_host(tmp_path: Path, host: str) -> None:
    assert read(tmp_path, HEAD.replace("https://aggregator", f"http://{host}")).server == f"http://{host}:8640"


def test_http_elsewhere_has_to_be_wanted(tmp_path: Path) -> None:
    assert read(tmp_path, HEAD.replace("https", "http") + "insecure = true\n").server == "http://aggregator:8640"


def test_a_file_that_everybody_may_change_is_refused(tmp_path: Path) -> None:
    read(tmp_path, HEAD)
    (tmp_path / "agent.toml").chmod(0o666)
    with pytest.raises(UsageError, match="chmod o-w"):
        read_agent_file(tmp_path / "agent.toml")
