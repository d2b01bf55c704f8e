#include "timing.hpp"

#include <ctime>

namespace timing {
namespace {

std::uint64_t read(clockid_t clock) {
    timespec now{};
    clock_gettime(clock, &now);
    return std::uint64_t(now.tv_sec) * 1'000'000'000u + std::uint64_t(now.tv_nsec);
}

}  // namespace

Region sha256;

std::uint64_t thread_cpu_ns() { return read(CLOCK_THREAD_CPUTIME_ID); }

std::uint64_t wall_ns() { return read(CLOCK_MONOTONIC); }

}  // namespace timing
