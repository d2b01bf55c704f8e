"""Fixtures and options for all tests."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import hypothesis
import pytest

from support import running_processes, rust_workload, workload

ROOT = Path(__file__).resolve().parent.parent

# What a terminal or a user's settings would change in the output.
NEUTRALIZED_VARIABLES = ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "SLOTSCOPE_STORE")

hypothesis.settings.register_profile("local", deadline=None)
hypothesis.settings.register_profile("ci", deadline=None, derandomize=True)
hypothesis.settings.register_profile("full", deadline=None, max_examples=1000)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--full", action="store_true", help="also run the tests that are marked `full`")


def pytest_configure(config: pytest.Config) -> None:
    for name in NEUTRALIZED_VARIABLES:
        os.environ.pop(name, None)
    # Ignored in what a shell started in the background or nohup did, and then by all that is started here, too.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda *_: None)
    profile = "full" if config.getoption("--full") else "ci" if os.environ.get("CI") else "local"
    hypothesis.settings.load_profile(profile)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--full"):
        return
    full = [item for item in items if item.get_closest_marker("full")]
    if full:
        config.hook.pytest_deselected(items=full)
        items[:] = [item for item in items if not item.get_closest_marker("full")]


@pytest.fixture(scope="session", autouse=True)
def no_process_is_left() -> Iterator[None]:
    """All that the tests start has ended when they have; what has not is ended, and its test named."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TESTS_OF_PROCESS", str(os.getpid()))
        yield
    started = running_processes.started_with(f"TESTS_OF_PROCESS={os.getpid()}", within_s=5.0)
    # Python's own lives as long as the interpreter that needed it.
    left = [process for process in started if "multiprocessing.resource_tracker" not in process.command]
    for process in left:
        process.kill()
    assert not left, "\n".join(map(str, left))


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    deadline = time.monotonic() + 5
    while left := [thread for thread in threading.enumerate() if thread not in before and not _is_idle_worker(thread)]:
        assert time.monotonic() < deadline, f"left running: {left}"
        time.sleep(0.01)


def _is_idle_worker(thread: threading.Thread) -> bool:
    """Of the test client's event loop, with which it ends."""
    return thread.name == "AnyIO worker thread"


@pytest.fixture(scope="session", autouse=True)
def cache_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Keeps the user's caches out of the tests, and the tests out of the user's caches."""
    directory = tmp_path_factory.mktemp("cache-home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(directory))
        yield directory


@pytest.fixture(scope="session")
def corpus() -> Path:
    """Public recordings and binaries with expected results, beside the checkout."""
    directory = ROOT.parent / "shared" / "corpus"
    if not directory.is_dir():
        pytest.skip(f"no input corpus at {directory}")
    return directory


@pytest.fixture(scope="session")
def perf(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The perf program, when this machine lets it sample."""
    program = shutil.which("perf")
    if program is None:
        pytest.skip("perf is not installed")
    recording = tmp_path_factory.mktemp("perf") / "probe.data"
    command = [program, "record", "-N", "-e", "cpu-clock", "-o", str(recording), "--", "true"]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        reason = next((line for line in done.stderr.splitlines() if line.strip()), "no message")
        pytest.skip(f"perf cannot record here: {reason.strip()}")
    return program


@pytest.fixture(scope="session")
def libc_symbols() -> None:
    """Needed wherever memmove and malloc are to have names: stack traces know them by address only."""
    mapped = [line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "/libc.so" in line]
    if not mapped or shutil.which("readelf") is None:
        pytest.skip("no C library or no readelf here")
    facts = subprocess.run(["readelf", "-SnW", mapped[0]], capture_output=True, text=True, check=True).stdout
    build_id = next((line.split()[-1] for line in facts.splitlines() if "Build ID:" in line), "")
    debug_file = Path("/usr/lib/debug/.build-id", build_id[:2], f"{build_id[2:]}.debug")
    if " .symtab " not in facts and not debug_file.exists():
        pytest.skip(f"no symbols for {mapped[0]}: install libc6-dbg (Debian, Ubuntu) or its like")


@pytest.fixture(scope="session")
def workload_build() -> Callable[[workload.Variant], Path]:
    """Builds the epoch workload; results are kept between sessions."""
    if shutil.which(workload.COMPILER) is None:
        pytest.skip(f"{workload.COMPILER} is not installed")
    return workload.build


@pytest.fixture(scope="session")
def rust_build() -> Callable[[rust_workload.RustVariant], Path]:
    """Builds the Rust workload; results are kept between sessions."""
    if shutil.which("cargo") is None or shutil.which("rustc") is None:
        pytest.skip("cargo and rustc are not installed")

    def build(variant: rust_workload.RustVariant) -> Path:
        try:
            return rust_workload.build(variant)
        except rust_workload.CratesUnavailable as error:
            pytest.skip(f"cargo cannot get the crates: {error}")

    return build
