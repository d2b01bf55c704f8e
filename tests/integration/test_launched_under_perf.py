"""perf attached to the waiting process: complete, exact, and gone afterwards.  `perf script` reads the recordings."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from collectors.processes.launcher import LaunchRequest, launch_recorded
from collectors.profilers.perf_record import PerfEnd, PerfRecorder, start_recording
from profiler.errors import CaptureError
from profiler.model.run import PerfSettings, RunOutcome

pytestmark = [pytest.mark.perf, pytest.mark.beside, pytest.mark.usefixtures("perf")]

FREQUENCY_HZ = 1999
PERIOD_NS = 500_250
SETTINGS = PerfSettings("cpu-clock", FREQUENCY_HZ, 0, "fp")
BURN = """
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static void *burn(void *unused) {
    struct timespec start, now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
    do clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    while ((now.tv_sec - start.tv_sec) * 1000000000L + now.tv_nsec - start.tv_nsec < 150000000L);
    return unused;
}
int main(int argc, char **argv) {
    int threads = atoi(argv[1]), children = atoi(argv[2]);
    pthread_t thread[8];
    for (int i = 0; i < children; i++)
        if (fork() == 0) { execl(argv[0], argv[0], "0", "0", (char *)0); _exit(9); }
    for (int i = 0; i < threads; i++) pthread_create(&thread[i], 0, burn, 0);
    burn(0);
    for (int i = 0; i < threads; i++) pthread_join(thread[i], 0);
    while (wait(0) > 0);
    return 0;
}
"""


@pytest.fixture(scope="module")
def burner(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A program whose every thread and child uses 150 ms of CPU: burner THREADS CHILDREN."""
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    directory = tmp_path_factory.mktemp("burner")
    (directory / "burner.c").write_text(BURN)
    subprocess.run(["gcc", "-O1", "-pthread", "-o", "burner", "burner.c"], cwd=directory, check=True)
    return str(directory / "burner")


Record = Callable[..., tuple[RunOutcome, PerfEnd, Path]]


@pytest.fixture
def record(tmp_path: Path) -> Record:
    def recorded(*arguments: str, settings: PerfSettings = SETTINGS) -> tuple[RunOutcome, PerfEnd, Path]:
        recording = tmp_path / "perf.data"
        request = LaunchRequest(arguments, tmp_path / "output")
        outcome, recorder = launch_recorded(request, lambda pid: start_recording(settings, pid, recording))
        return outcome, recorder.finish(), recording

    return recorded


def samples_by_thread(recording: Path) -> Counter[tuple[str, int]]:
    """Sum of periods per (comm, tid), as perf itself reads them."""
    command = ["perf", "script", "-i", str(recording), "-F", "comm,tid,period,event"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    weights: Counter[tuple[str, int]] = Counter()
    for comm, tid, period in re.findall(r"^\s*(.+?)\s+(\d+)\s+(\d+) +cpu-clock", text, re.MULTILINE):
        weights[comm, int(tid)] += int(period)
    return weights


@pytest.mark.alone
@pytest.mark.parametrize(("threads", "children"), [(0, 0), (3, 0), (0, 2), (2, 2)])
def test_weights_are_the_cpu_time_of_all_threads_and_children(record: Record, burner: str, threads: int, children: int) -> None:
    outcome, end, recording = record(burner, str(threads), str(children))
    assert (outcome.failure, end.failure, end.messages) == ("", "", ())
    weights = samples_by_thread(recording)
    own = {key: weight for key, weight in weights.items() if key[0] == "burner"}
    accounted_ns = outcome.user_ns + outcome.system_ns
    # Not sampled but accounted: a part of a period per thread, the timer's restart at every switch of context (15 to 45 us
    # each on a busy virtual machine), and the exec itself.
    switches = outcome.voluntary_switches + outcome.involuntary_switches
    doubt_ns = PERIOD_NS * len(own) + 50_000 * switches + 2_000_000
    assert accounted_ns >= 150e6 * (1 + threads + children)
    assert sum(own.values()) == pytest.approx(accounted_ns, abs=0.01 * accounted_ns + doubt_ns)
    assert len(own) == 1 + threads + children
    # Nothing of perf or of slotscope, but the waiting interpreter's last instructions.
    strangers = {comm for comm, _ in weights} - {"burner"}
    assert len(strangers) <= 1
    assert sum(weights.values()) - sum(own.values()) <= 20 * PERIOD_NS


def test_perf_attaches_every_time(record: Record) -> None:
    for number in range(6):
        mode = PerfSettings("cpu-clock", FREQUENCY_HZ, 0, "dwarf", dump_bytes=16384) if number % 2 else SETTINGS
        outcome, end, recording = record("true", settings=mode)
        assert (outcome.exit_code, end.failure, recording.read_bytes()[:8]) == (0, "", b"PERFILE2")


@pytest.mark.full
def test_perf_attaches_fifty_times_of_fifty(record: Record) -> None:
    ends = [record("true")[1].failure for _ in range(50)]
    assert ends == [""] * 50


def test_background_process_does_not_keep_perf_waiting(record: Record, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("collectors.profilers.perf_record.FINISH_ALONE_S", 0.2)
    outcome, end, recording = record("sh", "-c", "sleep 30 & echo $!")
    subprocess.run(["kill", outcome.output_tail.strip()], check=True)
    assert (outcome.failure, end.failure) == ("", "")
    assert recording.stat().st_size > 0


def test_event_that_perf_does_not_know(record: Record) -> None:
    with pytest.raises(CaptureError, match="perf cannot record event 'no-such-event' here"):
        record("true", settings=PerfSettings("no-such-event", 99))


def test_killed_perf_is_a_failure_of_the_recording_not_of_the_program(tmp_path: Path) -> None:
    request = LaunchRequest(("sleep", "0.3"), tmp_path / "output")

    def attach_and_kill(pid: int) -> PerfRecorder:
        recorder = start_recording(SETTINGS, pid, tmp_path / "perf.data")
        found = subprocess.run(["pgrep", "-f", f"perf record .*-p {pid} "], capture_output=True, text=True, check=True)
        for perf_pid in found.stdout.split():
            subprocess.run(["kill", "-9", perf_pid], check=True)
        return recorder

    outcome, recorder = launch_recorded(request, attach_and_kill)
    assert outcome.failure == ""
    assert re.match(r"perf ended with status -9", recorder.finish().failure)


def test_interrupt_leaves_neither_perf_nor_program(tmp_path: Path, burner: str) -> None:
    seen: list[int] = []

    def attach_and_interrupt(pid: int) -> PerfRecorder:
        recorder = start_recording(SETTINGS, pid, tmp_path / "perf.data")
        seen.append(pid)
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        return recorder

    previous = signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        with pytest.raises(KeyboardInterrupt):
            launch_recorded(LaunchRequest(("sleep", "30"), tmp_path / "output"), attach_and_interrupt)
    finally:
        signal.signal(signal.SIGALRM, previous)
    deadline = time.monotonic() + 5
    while Path(f"/proc/{seen[0]}").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not Path(f"/proc/{seen[0]}").exists()
    assert subprocess.run(["pgrep", "-f", f"perf record .*-p {seen[0]} "], check=False, capture_output=True).stdout == b""
