"""A node stand-in: in every period it uses stated amounts of CPU time in two functions, by its own thread's clock.

    duty HASH_MS TREE_MS [PERIOD_MS [PORT MEAN_US]]

With a port it has a Prometheus page on 127.0.0.1: ``handling_seconds`` with one observation of MEAN_US per period for
``path="/"`` and of ten times as much for ``path="/sync"``, and ``hash_seconds``: what the function ``hash_part`` used.
"""

from __future__ import annotations

import math
import subprocess
from pathlib import Path

PERIOD_MS = 50

SOURCE = r"""
#include <arpa/inet.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
static volatile unsigned long sink;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned long count;
static double mean_s, hash_s;
static int listener;
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
static int page(char *body, size_t room) {
    pthread_mutex_lock(&lock);
    unsigned long seen = count;
    double hash = hash_s;
    pthread_mutex_unlock(&lock);
    return snprintf(body, room,
        "# TYPE handling_seconds histogram\n"
        "handling_seconds_sum{path=\"/\"} %.9f\nhandling_seconds_count{path=\"/\"} %lu\n"
        "handling_seconds_sum{path=\"/sync\"} %.9f\nhandling_seconds_count{path=\"/sync\"} %lu\n"
        "# TYPE hash_seconds summary\nhash_seconds_sum %.9f\nhash_seconds_count %lu\n",
        seen * mean_s, seen, 10 * seen * mean_s, seen, hash, seen);
}
static void *answer(void *unused) {
    for (;;) {
        int peer = accept(listener, 0, 0);
        char request[4096], body[2048], head[256];
        if (peer < 0) continue;
        size_t got = 0;
        ssize_t more;
        while (got < sizeof request - 1 && (more = read(peer, request + got, sizeof request - 1 - got)) > 0) {
            request[got += more] = 0;
            if (strstr(request, "\r\n\r\n")) break;
        }
        int length = page(body, sizeof body);
        int first = snprintf(head, sizeof head, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
            "Content-Length: %d\r\nConnection: close\r\n\r\n", length);
        if (write(peer, head, first) != first || write(peer, body, length) != length) sink++;
        close(peer);
    }
    return unused;
}
static int serve(int port) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int on = 1;
    pthread_t thread;
    signal(SIGPIPE, SIG_IGN);
    listener = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(listener, (struct sockaddr *)&at, sizeof at) || listen(listener, 16)) return 1;
    return pthread_create(&thread, 0, answer, 0);
}
int main(int argc, char **argv) {
    double hash_ms = atof(argv[1]), tree_ms = atof(argv[2]), owed_ms = 0;
    long period_ms = argc > 3 ? atol(argv[3]) : %d;
    if (argc > 5) {
        mean_s = atof(argv[5]) / 1e6;
        if (serve(atoi(argv[4]))) return 1;
    }
    struct timespec next;
    clock_gettime(CLOCK_MONOTONIC, &next);
    for (double start = used();;) {
        hash_part(hash_ms - owed_ms);
        double hashed_ms = used() - start;
        tree_part(tree_ms);
        pthread_mutex_lock(&lock);
        count++, hash_s += hashed_ms / 1e3;
        pthread_mutex_unlock(&lock);
        /* what each burst uses too much is taken off the next one */
        owed_ms += used() - start - hash_ms - tree_ms;
        owed_ms = owed_ms < 0 ? 0 : owed_ms > hash_ms ? hash_ms : owed_ms;
        start = used();
        next.tv_nsec += period_ms * 1000000L;
        if (next.tv_nsec >= 1000000000L) next.tv_nsec -= 1000000000L, next.tv_sec++;
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, 0);
    }
}
""".replace("atol(argv[3]) : %d", f"atol(argv[3]) : {PERIOD_MS}")


def build(directory: Path) -> Path:
    """Two builds would be the same bytes; a symbolic link gives one another name."""
    source, program = directory / "duty.c", directory / "duty"
    source.write_text(SOURCE)
    flags = ["-O2", "-g", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-pthread", "-Wl,--build-id"]
    subprocess.run(["gcc", *flags, "-o", str(program), str(source)], check=True)
    return program


def cpu_ns(hash_ms: float, tree_ms: float, seconds: float, period_ms: int = PERIOD_MS) -> float:
    return (hash_ms + tree_ms) / period_ms * seconds * 1e9


def longest_gap_ms(busy_ms: float, period_ms: int, frequency_hz: int) -> float:
    """Between two samples, when one is taken every so often of CPU time and every period uses ``busy_ms`` of it."""
    return (math.ceil(1000 / frequency_hz / busy_ms) + 1) * period_ms
