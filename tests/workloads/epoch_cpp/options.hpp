#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace options {

enum class Mode { pure, mixed };

enum Phase : std::size_t { kIterate, kUpdate, kHash, kSha256, kShuffle, kCopy, kAllocate, kEpoch, kPhases };

struct PhaseName {
    const char* phase;
    const char* category;  // what the phase's time is called in a report
};

inline constexpr std::array<PhaseName, kPhases> kPhaseNames = {{
    {"iterate", "tree iteration"},
    {"update", "tree update"},
    {"hash", "tree hashing"},
    {"sha256", "SHA-256"},
    {"shuffle", "shuffling"},
    {"copy", "memmove"},
    {"allocate", "malloc"},
    {"epoch", "epoch processing"},
}};

struct Options {
    Mode mode = Mode::mixed;
    std::size_t validators = std::size_t{1} << 17;
    unsigned epochs = 0;  // 0: the mode's own default
    std::uint64_t seed = 1;
    bool force_portable = false;
    bool self_test = false;
    bool vectors = false;
    std::array<unsigned, kPhases> repeat{};  // how often one epoch does each phase's work; set by parse
};

// Prints what is wrong and exits with status 2 on a bad command line; prints the options and exits with 0 on --help.
Options parse(int argc, char** argv);

}  // namespace options
