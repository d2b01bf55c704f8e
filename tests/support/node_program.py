"""A node stand-in with a Prometheus page: in every 50 ms it uses stated amounts of CPU time in two functions.

    node PORT MEAN_US HASH_MS TREE_MS

Its page on 127.0.0.1:PORT has ``handling_seconds`` with one observation of MEAN_US per 50 ms for ``path="/"`` and of ten times
as much for ``path="/sync"``, and ``hash_seconds``: what the function ``hash_part`` used, by the thread's own clock.
"""

from __future__ import annotations

import contextlib
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

PERIOD_MS = 50
TREE_MS = 1.0
# Mean times in ms that were published of four nodes with the one build and four with the other, each the mean of 30 minutes.
PUBLISHED = {"default": (8.997, 9.026, 9.036, 9.018), "thin": (8.791, 8.822, 8.855, 8.875)}

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
            for (int i = 0; i < 20000; i++) sink += i;          \
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
int main(int argc, char **argv) {
    mean_s = atof(argv[2]) / 1e6;
    signal(SIGPIPE, SIG_IGN);
    double hash_ms = atof(argv[3]), tree_ms = atof(argv[4]);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[1])), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int on = 1;
    listener = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(listener, (struct sockaddr *)&at, sizeof at) || listen(listener, 16)) return 1;
    pthread_t thread;
    pthread_create(&thread, 0, answer, 0);
    struct timespec next;
    clock_gettime(CLOCK_MONOTONIC, &next);
    for (;;) {
        double start = used();
        hash_part(hash_ms);
        double hashed = used() - start;
        tree_part(tree_ms);
        pthread_mutex_lock(&lock);
        count++, hash_s += hashed / 1e3;
        pthread_mutex_unlock(&lock);
        next.tv_nsec += %d * 1000000L;
        if (next.tv_nsec >= 1000000000L) next.tv_nsec -= 1000000000L, next.tv_sec++;
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, 0);
    }
}
""".replace("%d * 1000000L", f"{PERIOD_MS} * 1000000L")


def build(directory: Path) -> Path:
    """With frame pointers and debug information."""
    source, program = directory / "node.c", directory / "node"
    source.write_text(SOURCE)
    flags = ["-O1", "-g", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-pthread"]
    subprocess.run(["gcc", *flags, "-o", str(program), str(source)], check=True)
    return program


@dataclass(frozen=True, slots=True)
class Node:
    """A process that is watched.  ``comm``: its name for the kernel."""

    comm: str
    port: int
    process: subprocess.Popen[bytes]

    @property
    def metrics(self) -> str:
        return f"http://127.0.0.1:{self.port}/metrics"

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


@contextlib.contextmanager
def running_nodes(
    program: Path, means_ms: Sequence[float], hash_ms: Sequence[float], ports: Sequence[int] = ()
) -> Iterator[list[Node]]:
    """One per mean, named slsc-n0, slsc-n1, ...; all answer.  ``ports``: where their pages are, () = free ones."""
    nodes: list[Node] = []
    try:
        for number, (mean_ms, each_hash_ms) in enumerate(zip(means_ms, hash_ms, strict=True)):
            comm = f"slsc-n{number}"
            link = program.parent / comm
            if not link.exists():
                link.symlink_to(program)
            port = ports[number] if ports else _free_port()
            words = [str(link), str(port), f"{1e3 * mean_ms:.3f}", str(each_hash_ms), str(TREE_MS)]
            nodes.append(Node(comm, port, subprocess.Popen(words, stdin=subprocess.DEVNULL)))
        for node in nodes:
            _await_port(node)
        yield nodes
    finally:
        for node in nodes:
            node.end()


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _await_port(node: Node) -> None:
    deadline = time.monotonic() + 30
    while True:
        with socket.socket() as attempt:
            if attempt.connect_ex(("127.0.0.1", node.port)) == 0:
                return
        assert node.process.poll() is None, f"{node.comm} ended with {node.process.returncode}"
        assert time.monotonic() < deadline
        time.sleep(0.05)
