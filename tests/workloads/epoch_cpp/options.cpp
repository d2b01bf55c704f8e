#include "options.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace options {
namespace {

constexpr char kHelp[] =
    "usage: epoch [options]\n"
    "  --mode mixed|pure     mixed: whole epochs, as a client processes them (default)\n"
    "                        pure: each phase does the work of one category only\n"
    "  --validators N        size of the registry (default 131072)\n"
    "  --epochs N            how many epochs (default: mixed 40, pure 4)\n"
    "  --repeat PHASE=N,...  how often an epoch does a phase's work; phases: iterate update hash sha256 shuffle copy\n"
    "                        allocate epoch\n"
    "  --seed N              seed of all random numbers (default 1)\n"
    "  --threads N           only 1\n"
    "  --portable            do not use SHA-NI\n"
    "  --self-test           check the parts against published vectors and plain definitions, then exit\n"
    "  --vectors             print results that other programs can check, then exit\n";

constexpr std::array<unsigned, kPhases> kPureRepeats = {160, 80, 80, 200, 1, 320, 16, 18};
constexpr std::array<unsigned, kPhases> kMixedRepeats = {4, 1, 1, 1, 1, 4, 1, 2};

[[noreturn]] void fail(const std::string& message) {
    std::fprintf(stderr, "epoch: %s; see --help\n", message.c_str());
    std::exit(2);
}

std::uint64_t parse_number(const char* text, const char* option) {
    char* end = nullptr;
    const unsigned long long value = std::strtoull(text, &end, 10);
    if (end == text || *end != '\0' || *text == '-') fail(std::string(option) + ": not a number: " + text);
    return value;
}

std::size_t parse_phase(const std::string& name) {
    for (std::size_t phase = 0; phase < kPhases; ++phase) {
        if (name == kPhaseNames[phase].phase) return phase;
    }
    fail("--repeat: no such phase: " + name);
}

void parse_repeats(const std::string& text, std::array<unsigned, kPhases>& repeat) {
    for (std::size_t first = 0; first < text.size();) {
        const std::size_t comma = std::min(text.find(',', first), text.size());
        const std::string item = text.substr(first, comma - first);
        const std::size_t equals = item.find('=');
        if (equals == std::string::npos) fail("--repeat: expected PHASE=N: " + item);
        const std::string number = item.substr(equals + 1);
        repeat[parse_phase(item.substr(0, equals))] = static_cast<unsigned>(parse_number(number.c_str(), "--repeat"));
        first = comma + 1;
    }
}

Mode parse_mode(const std::string& text) {
    if (text == "pure") return Mode::pure;
    if (text == "mixed") return Mode::mixed;
    fail("--mode: pure or mixed, not " + text);
}

}  // namespace

Options parse(int argc, char** argv) {
    Options result;
    std::string repeats;
    for (int i = 1; i < argc; ++i) {
        const std::string name = argv[i];
        if (name == "--help") {
            std::fputs(kHelp, stdout);
            std::exit(0);
        }
        if (name == "--self-test") {
            result.self_test = true;
            continue;
        }
        if (name == "--vectors") {
            result.vectors = true;
            continue;
        }
        if (name == "--portable") {
            result.force_portable = true;
            continue;
        }
        if (i + 1 == argc) fail("unknown option or missing value: " + name);
        const char* value = argv[++i];
        if (name == "--mode") {
            result.mode = parse_mode(value);
        } else if (name == "--validators") {
            result.validators = parse_number(value, "--validators");
        } else if (name == "--epochs") {
            result.epochs = static_cast<unsigned>(parse_number(value, "--epochs"));
        } else if (name == "--repeat") {
            repeats = value;
        } else if (name == "--seed") {
            result.seed = parse_number(value, "--seed");
        } else if (name == "--threads") {
            if (parse_number(value, "--threads") != 1) fail("--threads: only 1");
        } else {
            fail("unknown option: " + name);
        }
    }
    if (result.validators < 256 || result.validators > (std::size_t{1} << 26)) fail("--validators: 256 to 67108864");
    result.repeat = result.mode == Mode::pure ? kPureRepeats : kMixedRepeats;
    if (result.epochs == 0) result.epochs = result.mode == Mode::pure ? 4 : 40;
    parse_repeats(repeats, result.repeat);
    return result;
}

}  // namespace options
