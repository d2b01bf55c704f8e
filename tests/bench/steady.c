/* A fixed amount of work, timed by itself: `steady ITERATIONS`, ready when it says so; a line on standard input begins it. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

__attribute__((noinline)) static uint64_t mixed(uint64_t value) {
    for (int i = 0; i < 64; i++) value = (value ^ (value >> 29)) * 0xbf58476d1ce4e5b9u + i;
    return value;
}

/* Stacks of a usual depth. */
__attribute__((noinline)) static uint64_t deeper(uint64_t value, int left) {
    return (left ? deeper(value, left - 1) : mixed(value)) + 1;
}

int main(int argc, char **argv) {
    long iterations = argc > 1 ? atol(argv[1]) : 0;
    uint64_t value = 88172645463325252u;
    printf("ready\n");
    fflush(stdout);
    if (getchar() == EOF) return 1;
    double wall = now(CLOCK_MONOTONIC), cpu = now(CLOCK_PROCESS_CPUTIME_ID);
    for (long i = 0; i < iterations; i++) value = deeper(value, 24);
    printf("%.9f %.9f\n", now(CLOCK_MONOTONIC) - wall, now(CLOCK_PROCESS_CPUTIME_ID) - cpu);
    fflush(stdout);
    while (getchar() != EOF) {}
    return value == 0;
}
