"""A program to attach to whose threads and children come and go: about 40 and 8 a second, until it is killed."""

from __future__ import annotations

import subprocess
from pathlib import Path

SOURCE = r"""
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static volatile unsigned long sink;
static double used(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1e3 + now.tv_nsec / 1e6;
}
__attribute__((noinline)) static void burn(double milliseconds) {
    double end = used() + milliseconds;
    while (used() < end)
        for (int i = 0; i < 20000; i++) sink += i;
}
/* so many different stacks are met over time */
__attribute__((noinline)) static void deeper(int left) {
    if (left) deeper(left - 1); else burn(2);
    sink++;
}
static void *short_lived(void *depth) {
    deeper((int)(long)depth);
    return 0;
}
int main(void) {
    printf("ready\n");
    fflush(stdout);
    for (unsigned long turn = 0;; turn++) {
        pthread_t thread;
        if (!pthread_create(&thread, 0, short_lived, (void *)(turn % 64))) pthread_join(thread, 0);
        if (turn % 5 == 0) {
            pid_t child = fork();
            if (!child) {
                deeper(turn % 32);
                _exit(0);
            }
            waitpid(child, 0, 0);
        }
        usleep(20000);
    }
}
"""


def build(directory: Path, name: str) -> Path:
    """The executable, with frame pointers and debug information."""
    source, program = directory / "churn.c", directory / name
    source.write_text(SOURCE)
    flags = ["-O1", "-g", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-pthread", "-w"]
    subprocess.run(["gcc", *flags, "-o", str(program), str(source)], check=True)
    return program
