"""A node stand-in: in every period it uses stated amounts of CPU time in two functions, by its own thread's clock.

duty HASH_MS TREE_MS [PERIOD_MS]
"""

from __future__ import annotations

import math
import subprocess
from pathlib import Path

PERIOD_MS = 50

SOURCE = r"""
#include <stdlib.h>
#include <time.h>
static volatile unsigned long sink;
static double used(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1e3 + now.tv_nsec / 1e6;
}
#define BURN(name)                                              \
    __attribute__((noinline)) void name(double milliseconds) {  \
        double end = used() + milliseconds;                     \
        while (used() < end)                                    \
            for (int i = 0; i < 2000; i++) sink += i;           \
    }
BURN(hash_part)
BURN(tree_part)
int main(int argc, char **argv) {
    double hash_ms = atof(argv[1]), tree_ms = atof(argv[2]), owed_ms = 0;
    long period_ms = argc > 3 ? atol(argv[3]) : %d;
    struct timespec next;
    clock_gettime(CLOCK_MONOTONIC, &next);
    for (double start = used();;) {
        hash_part(hash_ms - owed_ms);
        tree_part(tree_ms);
        /* what each burst uses too much is taken off the next one */
        owed_ms += used() - start - hash_ms - tree_ms;
        owed_ms = owed_ms < 0 ? 0 : owed_ms > hash_ms ? hash_ms : owed_ms;
        start = used();
        next.tv_nsec += period_ms * 1000000L;
        if (next.tv_nsec >= 1000000000L) next.tv_nsec -= 1000000000L, next.tv_sec++;
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, 0);
    }
}
""".replace("%d", str(PERIOD_MS))


def build(directory: Path) -> Path:
    """Two builds would be the same bytes; a symbolic link gives one another name."""
    source, program = directory / "duty.c", directory / "duty"
    source.write_text(SOURCE)
    flags = ["-O2", "-g", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-Wl,--build-id"]
    subprocess.run(["gcc", *flags, "-o", str(program), str(source)], check=True)
    return program


def cpu_ns(hash_ms: float, tree_ms: float, seconds: float, period_ms: int = PERIOD_MS) -> float:
    return (hash_ms + tree_ms) / period_ms * seconds * 1e9


def longest_gap_ms(busy_ms: float, period_ms: int, frequency_hz: int) -> float:
    """Between two samples, when one is taken every so often of CPU time and every period uses ``busy_ms`` of it."""
    return (math.ceil(1000 / frequency_hz / busy_ms) + 1) * period_ms
