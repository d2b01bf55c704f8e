"""A program to attach to, which burns stated amounts of CPU time and prints what its own clocks say of them.

    attached_program EARLY_S LATE_S CHILD_S     after SIGUSR1: two threads that were there before burn EARLY_S each, then two
                                                new ones LATE_S each, then two children CHILD_S each; then it sleeps
    attached_program forever                    burns in its first thread until it is killed

Every part prints one line, ``name seconds``, and "done" is the last one.
"""

from __future__ import annotations

import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

SOURCE = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static double used(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec + now.tv_nsec / 1e9;
}
static volatile unsigned long sink;
#define BURN(name)                                                              \
    __attribute__((noinline)) void name(double seconds) {                       \
        double end = used(CLOCK_THREAD_CPUTIME_ID) + seconds;                   \
        while (used(CLOCK_THREAD_CPUTIME_ID) < end)                             \
            for (int i = 0; i < 200000; i++) sink += i;                         \
        printf(#name " %.6f\n", used(CLOCK_THREAD_CPUTIME_ID));                 \
        fflush(stdout);                                                         \
    }
BURN(early_part)
BURN(late_part)
BURN(child_part)
BURN(endless_part)
static double early_s, late_s, child_s;
static pthread_barrier_t gate;
static void *early(void *_) {
    pthread_setname_np(pthread_self(), "early");
    pthread_barrier_wait(&gate);
    early_part(early_s);
    return 0;
}
static void *late(void *_) {
    pthread_setname_np(pthread_self(), "late");
    late_part(late_s);
    return 0;
}
int main(int argc, char **argv) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &set, 0);
    printf("ready\n");
    fflush(stdout);
    if (argc == 2) endless_part(1e9);
    early_s = atof(argv[1]), late_s = atof(argv[2]), child_s = atof(argv[3]);
    pthread_t threads[4];
    pthread_barrier_init(&gate, 0, 3);
    for (int i = 0; i < 2; i++) pthread_create(threads + i, 0, early, 0);
    int number;
    sigwait(&set, &number);
    pthread_barrier_wait(&gate);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    for (int i = 2; i < 4; i++) pthread_create(threads + i, 0, late, 0);
    for (int i = 2; i < 4; i++) pthread_join(threads[i], 0);
    for (int i = 0; i < 2; i++)
        if (!fork()) {
            child_part(child_s);
            _exit(0);
        }
    while (wait(0) > 0) {}
    printf("done\n");
    fflush(stdout);
    for (;;) pause();
}
"""


def build(directory: Path) -> Path:
    """The executable, with frame pointers and debug information."""
    (directory / "attached_program.c").write_text(SOURCE)
    command = ["gcc", "-O1", "-g", "-fno-omit-frame-pointer", "-pthread", "-w", "-o", "burner", "attached_program.c"]
    subprocess.run(command, cwd=directory, check=True)
    return directory / "burner"


@dataclass(frozen=True, slots=True)
class Burner:
    """The program, running.  ``output``: what it has printed."""

    process: subprocess.Popen[bytes]
    output: Path

    @property
    def pid(self) -> int:
        return self.process.pid

    def wait_for(self, line: str, seconds: float = 60.0) -> None:
        wait_for_line(self.output, line, seconds)

    def timers_s(self) -> dict[str, float]:
        """Seconds of CPU time by part, all threads and children of it together."""
        found: dict[str, float] = {}
        for line in self.output.read_text().splitlines():
            name, _, seconds = line.partition(" ")
            if seconds:
                found[name] = found.get(name, 0.0) + float(seconds)
        return found

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


def start(program: Path, output: Path, *arguments: str) -> Burner:
    """Waits until it is ready."""
    with output.open("wb") as stream:
        burner = Burner(subprocess.Popen([str(program), *arguments], stdin=subprocess.DEVNULL, stdout=stream), output)
    burner.wait_for("ready")
    return burner


def wait_for_line(path: Path, text: str, seconds: float = 60.0) -> None:
    """Until a line with this text is in the file."""
    deadline = time.monotonic() + seconds
    while not path.exists() or text not in path.read_text():
        assert time.monotonic() < deadline, f"no {text!r} in {path.read_text() if path.exists() else path}"
        time.sleep(0.02)
