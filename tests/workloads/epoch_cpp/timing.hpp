// The program's own timers: CPU time of this thread, by the clock that the kernel accounts it with.
#pragma once

#include <cstdint>

namespace timing {

std::uint64_t thread_cpu_ns();
std::uint64_t wall_ns();

// CPU time spent in a region that several callers enter.
struct Region {
    std::uint64_t cpu_ns = 0;
};

// SHA-256 below tree hashing and shuffling.
extern Region sha256;

// Adds the time of its life to a region.
class Section {
public:
    explicit Section(Region& region) : region_(region), started_(thread_cpu_ns()) {}
    ~Section() { region_.cpu_ns += thread_cpu_ns() - started_; }
    Section(const Section&) = delete;
    Section& operator=(const Section&) = delete;

private:
    Region& region_;
    std::uint64_t started_;
};

}  // namespace timing
