"""Where frame-pointer stacks end: in C libraries without frame pointers or local symbols, however a thread was started."""

from __future__ import annotations

import shutil
import subprocess

import numpy as np
import pytest

from collectors.recording_file import read_recording
from profiler.model.capture import Capture
from profiler.model.sample_table import StackState
from symbolize.locate import Locator

pytestmark = [pytest.mark.perf, pytest.mark.beside, pytest.mark.usefixtures("perf")]

SOURCE = """
#include <pthread.h>
#include <thread>
static volatile double sink;
__attribute__((noinline)) void burn() { double sum = 0; for (long i = 1; i < 60000000; i++) sum += i; sink = sum; }
extern "C" void *posix_thread(void *) { burn(); sink = 1; return nullptr; }
void cpp_thread() { burn(); sink = 2; }
int main() {
    pthread_t posix;
    pthread_create(&posix, nullptr, posix_thread, nullptr);
    std::thread cpp(cpp_thread);
    burn();
    pthread_join(posix, nullptr);
    cpp.join();
    return 0;
}
"""


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Capture:
    if shutil.which("g++") is None:
        pytest.skip("g++ is not installed")
    directory = tmp_path_factory.mktemp("threads")
    (directory / "threads.cpp").write_text(SOURCE)
    subprocess.run(["g++", "-O0", "-pthread", "-o", "threads", "threads.cpp"], cwd=directory, check=True)
    command = ["perf", "record", "-N", "-q", "-F", "999", "-e", "cpu-clock:u", "-g", "-o", "perf.data", "./threads"]
    subprocess.run(command, cwd=directory, check=True, capture_output=True)
    return read_recording(directory / "perf.data", None, Locator())


def test_main_and_started_threads_are_complete(capture: Capture) -> None:
    samples, stacks, frames = capture.samples, capture.stacks, capture.frames
    program = [row for row, dso in enumerate(capture.dsos) if dso.name == "threads"]
    is_burning = np.isin(frames.dso[stacks.frame[samples.stack]], program)
    assert len(np.unique(samples.thread[is_burning])) == 3
    for thread in np.unique(samples.thread[is_burning]):
        state = samples.state[is_burning & (samples.thread == thread)]
        assert len(state) > 30
        # A sample or two may fall on the instructions that set up a frame, or take it down.
        assert np.count_nonzero(state == StackState.COMPLETE) >= len(state) - 2
